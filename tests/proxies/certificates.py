"""A certificate authority of a test, and the certificates that it signs."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SIGNING = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Sign certificates; `directory` gets its own certificate and those it signs, as PEM files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        now = datetime.now(UTC)
        builder = self._begin(self._name, self._key, now, now + timedelta(days=1))
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(SIGNING, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = directory / "authority.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, host: str, *, valid_until: datetime, name: str = "") -> "IssuedCertificate":
        """Write a certificate of a host with its key; it is valid for the two days before `valid_until`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        builder = self._begin(subject, key, valid_until - timedelta(days=2), valid_until)
        certificate = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False).sign(
            self._key, hashes.SHA256()
        )
        issued = IssuedCertificate(
            self._directory / f"{name or host}.crt.pem", self._directory / f"{name or host}.key.pem"
        )
        issued.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return issued

    def trusting_context(self) -> ssl.SSLContext:
        """Return the context of a client that trusts this authority only."""
        return ssl.create_default_context(cafile=self.path)

    def _begin(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin - timedelta(minutes=5))
            .not_valid_after(end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


class IssuedCertificate:
    """The files of a certificate and its key."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate, self.key = certificate, key

    def serving_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context
