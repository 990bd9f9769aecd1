# The server, the worker and all commands of Kalends. compose.yaml shows how they work together.
#   docker build --tag kalends .
#   docker run --rm kalends --help
FROM python:3.13-slim-bookworm AS build

RUN python3 -m pip install --no-cache-dir uv
ENV UV_COMPILE_BYTECODE=1 \
    UV_FROZEN=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/kalends \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /source
# Dependencies change less often than the code, so they are a layer of their own.
COPY pyproject.toml uv.lock ./
RUN uv sync --no-default-groups --extra s3 --no-install-project
COPY LICENSE README.md ./
COPY kalends kalends
RUN uv sync --no-default-groups --extra s3 --no-editable


FROM python:3.13-slim-bookworm

# The IDs are fixed, so that the owner of a media volume stays the same when the image is rebuilt. `just image` builds
# this stage on a smaller base, which has no useradd.
RUN echo 'kalends:x:10001:' >> /etc/group \
    && echo 'kalends:x:10001:10001::/var/lib/kalends:/usr/sbin/nologin' >> /etc/passwd \
    && install --directory --owner=kalends --group=kalends --mode=0750 /var/lib/kalends /var/lib/kalends/media
COPY --from=build /opt/kalends /opt/kalends
ENV PATH=/opt/kalends/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    KALENDS_MEDIA_DIR=/var/lib/kalends/media
USER kalends
WORKDIR /var/lib/kalends
VOLUME /var/lib/kalends/media
EXPOSE 8000
STOPSIGNAL SIGTERM
# /readyz responds 200 once the database is reachable and has the current schema. The image has no curl.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python3", "-c", "import http.client; c = http.client.HTTPConnection('127.0.0.1', 8000, timeout=4); c.request('GET', '/readyz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["kalends"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
