"""The headers of fields that several kinds of tables have: one text per language, as in `table_headers.py`."""

from typing import Final

NAME: Final = ("Name", "Name", "Nom", "Nombre", "Nome", "Nome", "Naam", "名称")
TITLE: Final = (
    "Title|Event Name|Name|Event|Subject|Summary|What|Event Title|Headline",
    "Titel|Name|Veranstaltung|Veranstaltungstitel|Veranstaltungsname|Bezeichnung|Betreff|Termin|Thema|Was",
    "Titre|Nom|Événement|Nom de l'événement|Titre de l'événement|Intitulé|Objet|Manifestation",
    "Título|Nombre|Evento|Nombre del evento|Título del evento|Asunto|Actividad",
    "Titolo|Nome|Evento|Nome evento|Nome dell'evento|Titolo evento|Oggetto|Manifestazione",
    "Título|Nome|Evento|Nome do evento|Título do evento|Assunto|Atividade",
    "Titel|Naam|Evenement|Naam evenement|Activiteit|Onderwerp|Omschrijving kort",
    "タイトル|イベント名|名称|件名|題名|催し名|行事名|イベント",
)
DESCRIPTION: Final = (
    "Description|Details|Event Description|Text|Content|Body|Notes",
    "Beschreibung|Details|Text|Inhalt|Beschreibungstext|Veranstaltungsbeschreibung|Info",
    "Description|Détails|Texte|Contenu|Descriptif",
    "Descripción|Detalles|Texto|Contenido",
    "Descrizione|Dettagli|Testo|Contenuto",
    "Descrição|Detalhes|Texto|Conteúdo",
    "Beschrijving|Omschrijving|Details|Tekst|Inhoud",
    "説明|詳細|内容|本文|概要",
)
EXCERPT: Final = (
    "Excerpt|Short Description|Teaser|Subtitle|Summary Text",
    "Auszug|Kurzbeschreibung|Kurztext|Teaser|Untertitel|Anreißer",
    "Extrait|Description courte|Résumé|Chapeau|Sous-titre",
    "Extracto|Descripción corta|Descripción breve|Resumen|Subtítulo",
    "Estratto|Descrizione breve|Riassunto|Sommario|Sottotitolo",
    "Trecho|Descrição curta|Resumo|Subtítulo",
    "Samenvatting|Korte beschrijving|Uittreksel|Ondertitel",
    "抜粋|要約|短い説明|サブタイトル|キャッチコピー",
)
IMAGE: Final = (
    "Image|Featured Image|Picture|Image URL|Photo|Poster",
    "Bild|Beitragsbild|Bild-URL|Foto|Titelbild",
    "Image|Image mise en avant|Photo|Affiche|URL de l'image",
    "Imagen|Imagen destacada|Foto|Cartel|URL de la imagen",
    "Immagine|Immagine in evidenza|Foto|Locandina|URL immagine",
    "Imagem|Imagem destacada|Foto|Cartaz|URL da imagem",
    "Afbeelding|Uitgelichte afbeelding|Foto|Poster|URL afbeelding",
    "画像|アイキャッチ画像|写真|画像URL|ポスター",
)
STATUS: Final = (
    "Status|Post Status|Publication Status",
    "Status|Veröffentlichungsstatus",
    "Statut|État de publication",
    "Estado|Estado de publicación",
    "Stato|Stato di pubblicazione",
    "Status|Estado de publicação",
    "Status|Publicatiestatus",
    "公開状態|ステータス|公開ステータス",
)
WEBSITE: Final = (
    "Website|URL|Web|Link|Homepage|Web Site|Event URL|More Information|Web Page",
    "Webseite|Website|Internetseite|Link|Homepage|Internet|URL|Weitere Informationen",
    "Site web|Site Internet|Lien|URL|Page web|Plus d'informations",
    "Sitio web|Página web|Web|Enlace|URL|Más información",
    "Sito web|Sito|Sito Internet|Link|Collegamento|URL|Pagina web",
    "Site|Website|Página web|Link|URL|Mais informações",
    "Website|Webpagina|Link|URL|Meer informatie|Webadres",
    "ウェブサイト|URL|ホームページ|リンク|公式サイト|サイト",
)
SHOW_MAP: Final = (
    "Show map|Display Map|Show Google Map",
    "Karte anzeigen",
    "Afficher la carte",
    "Mostrar mapa",
    "Mostra mappa",
    "Mostrar mapa|Exibir mapa",
    "Kaart tonen|Toon kaart",
    "地図を表示",
)
SHOW_MAP_LINK: Final = (
    "Show map link|Display Map Link|Show Google Map Link",
    "Link zur Karte anzeigen|Kartenlink anzeigen",
    "Afficher le lien de la carte|Afficher le lien vers la carte",
    "Mostrar enlace al mapa|Mostrar enlace del mapa",
    "Mostra link alla mappa|Mostra link mappa",
    "Mostrar link do mapa|Exibir link do mapa",
    "Kaartlink tonen|Link naar kaart tonen",
    "地図へのリンクを表示|地図リンクを表示",
)
SLUG: Final = (
    "Slug|Permalink",
    "Titelform|Slug|Permalink",
    "Slug|Identifiant URL",
    "Slug|Identificador URL",
    "Slug|Abbreviazione URL",
    "Slug|Identificador URL",
    "Slug|URL-naam",
    "スラッグ",
)
UID: Final = (
    "UID|ID|Event ID|Identifier|External ID|Reference|Key",
    "UID|ID|Kennung|Nummer|Veranstaltungsnummer|Veranstaltungs-ID|Termin-ID|Referenz",
    "UID|ID|Identifiant|Référence|Numéro",
    "UID|ID|Identificador|Referencia|Código",
    "UID|ID|Identificativo|Riferimento|Codice",
    "UID|ID|Identificador|Referência|Código",
    "UID|ID|Kenmerk|Referentie|Nummer",
    "UID|ID|識別子|番号|管理番号|イベントID",
)
ADDRESS: Final = (
    "Address|Street|Street Address|Address 1",
    "Adresse|Straße|Strasse|Anschrift|Straße und Hausnummer|Straße/Nr.",
    "Adresse|Rue|Adresse postale",
    "Dirección|Calle|Domicilio",
    "Indirizzo|Via",
    "Endereço|Rua|Logradouro",
    "Adres|Straat|Straat en huisnummer",
    "住所|番地|所在地",
)
CITY: Final = (
    "City|Town|Place|Locality",
    "Stadt|Gemeinde|Ortschaft|Wohnort",
    "Ville|Commune|Localité",
    "Ciudad|Localidad|Población|Municipio",
    "Città|Comune|Località",
    "Cidade|Município",
    "Plaats|Stad|Woonplaats|Gemeente",
    "市区町村|市町村|都市",
)
ZIP: Final = (
    "Postal code|ZIP|Zip Code|Postcode|Post Code|ZIP/Postal Code",
    "PLZ|Postleitzahl",
    "Code postal|CP|NPA",
    "Código postal|CP",
    "CAP|Codice postale",
    "CEP|Código postal",
    "Postcode",
    "郵便番号",
)
STATE: Final = (
    "State|Federal State",
    "Bundesland|Bundesstaat|Staat",
    "État",
    "Estado federal",
    "Stato federale",
    "UF|Unidade federativa",
    "Staat|Deelstaat",
    "州",
)
PROVINCE: Final = (
    "Province|Region|County|State/Province|State Province",
    "Provinz|Region|Kanton|Landkreis",
    "Province|Région|Département|Canton",
    "Provincia|Región|Comunidad autónoma",
    "Provincia|Regione|Cantone",
    "Província|Região",
    "Provincie|Regio",
    "都道府県|県|地域",
)
COUNTRY: Final = ("Country", "Land", "Pays", "País", "Paese|Nazione", "País", "Land", "国|国名")
PHONE: Final = (
    "Phone|Telephone|Phone Number|Tel",
    "Telefon|Telefonnummer|Tel.|Rufnummer",
    "Téléphone|Tél.|Numéro de téléphone",
    "Teléfono|Tel.|Número de teléfono",
    "Telefono|Tel.|Numero di telefono",
    "Telefone|Tel.|Fone|Número de telefone",
    "Telefoon|Tel.|Telefoonnummer",
    "電話|電話番号|TEL",
)
EMAIL: Final = (
    "E-mail|Email|Email Address|Mail|Contact Email",
    "E-Mail|E-Mail-Adresse|Mail|Kontakt-E-Mail",
    "E-mail|Courriel|Adresse e-mail|Mail|Mél",
    "Correo electrónico|E-mail|Correo|Email",
    "E-mail|Posta elettronica|Indirizzo e-mail|Mail",
    "E-mail|Correio eletrônico|Email",
    "E-mail|E-mailadres|Mail",
    "メール|メールアドレス|Eメール",
)
LATITUDE: Final = (
    "Latitude|Lat|Geo Lat",
    "Breitengrad|Breite|Geografische Breite",
    "Latitude",
    "Latitud",
    "Latitudine",
    "Latitude",
    "Breedtegraad",
    "緯度",
)
LONGITUDE: Final = (
    "Longitude|Lng|Lon|Long|Geo Lng",
    "Längengrad|Länge|Geografische Länge",
    "Longitude",
    "Longitud",
    "Longitudine",
    "Longitude",
    "Lengtegraad",
    "経度",
)
VENUE: Final = (
    "Venue|Location|Venue Name|Where|Venue Name or ID|Location Name",
    "Veranstaltungsort|Ort|Location|Spielort|Spielstätte|Treffpunkt|Lokalität|Wo",
    "Lieu|Lieu de l'événement|Nom du lieu|Salle|Endroit|Où",
    "Lugar|Recinto|Lugar del evento|Nombre del lugar|Ubicación|Sede|Local",
    "Luogo|Luogo dell'evento|Nome del luogo|Sede|Dove",
    "Local|Local do evento|Nome do local|Lugar|Onde",
    "Locatie|Naam locatie|Zaal|Waar",
    "会場|場所|開催場所|会場名|開催地",
)
ORGANIZER: Final = (
    "Organizer|Organiser|Organizers|Organizer Name|Organizer Name(s) or ID(s)|Organizer Name or ID|Host|Hosted by",
    "Veranstalter|Veranstalterin|Organisator|Ausrichter|Veranstalter/in|Gastgeber",
    "Organisateur|Organisateurs|Organisatrice|Organisé par|Nom de l'organisateur",
    "Organizador|Organizadores|Organiza|Organizado por|Nombre del organizador",
    "Organizzatore|Organizzatori|Organizzato da|Nome organizzatore",
    "Organizador|Organizadores|Organizado por|Realização|Nome do organizador",
    "Organisator|Organisatoren|Georganiseerd door|Naam organisator",
    "主催者|主催|主催者名|オーガナイザー",
)
