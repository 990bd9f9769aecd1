"""Column headers in imported and exported tables, in eight languages.

Each header has one entry per language, in the order of ORDER. Bars separate synonyms; exports use the first one.
"""

from typing import Final

ORDER: Final = ("en", "de", "fr", "es", "it", "pt-BR", "nl", "ja")

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
START_DATE: Final = (
    "Start date|Date|Start|Starts|Begin|Begins|Day|When|Start Datetime|Start Date/Time|DTSTART|From",
    "Startdatum|Datum|Beginn|Start|Anfang|Von|Beginndatum|Anfangsdatum|Beginnt am|Wann|Datum von",
    "Date de début|Date|Début|Commence le|Jour|Quand|Du",
    "Fecha de inicio|Fecha|Inicio|Comienzo|Día|Cuándo|Desde|Fecha inicial",
    "Data di inizio|Data|Inizio|Data inizio|Giorno|Quando|Dal",
    "Data de início|Data|Início|Começo|Dia|Quando|De|Data inicial",
    "Startdatum|Datum|Begin|Start|Begindatum|Dag|Wanneer|Van",
    "開始日|日付|開催日|日時|開始日時|開始|年月日",
)
START_TIME: Final = (
    "Start time|Time|Begin Time|From Time",
    "Startzeit|Uhrzeit|Beginnzeit|Zeit|Anfangszeit|Uhrzeit von|Beginn Uhrzeit|Startuhrzeit",
    "Heure de début|Heure|Horaire|Horaires",
    "Hora de inicio|Hora|Horario",
    "Ora di inizio|Ora|Orario|Ora inizio",
    "Hora de início|Hora|Horário|Hora inicial",
    "Starttijd|Tijd|Begintijd|Tijdstip",
    "開始時刻|時刻|開始時間|時間",
)
END_DATE: Final = (
    "End date|End|Ends|Until|End Datetime|End Date/Time|DTEND|To|Finish",
    "Enddatum|Ende|Bis|Schluss|Endet am|Datum bis",
    "Date de fin|Fin|Jusqu'au|Se termine le|Au",
    "Fecha de fin|Fin|Hasta|Fecha final|Término|Fecha de finalización",
    "Data di fine|Fine|Data fine|Fino al|Al",
    "Data de término|Fim|Término|Até|Data final|Data de fim",
    "Einddatum|Einde|Eind|Tot|Tot en met",
    "終了日|終了日時|終了|最終日",
)
END_TIME: Final = (
    "End time|Finish Time|To Time",
    "Endzeit|Uhrzeit bis|Ende Uhrzeit|Schlusszeit|Enduhrzeit",
    "Heure de fin",
    "Hora de fin|Hora final|Hora de finalización",
    "Ora di fine|Ora fine",
    "Hora de término|Hora final|Hora de fim",
    "Eindtijd",
    "終了時刻|終了時間",
)
ALL_DAY: Final = (
    "All day|All Day Event|Whole Day|Full Day",
    "Ganztägig|Ganzer Tag|Ganztags|Ganztägige Veranstaltung|Ganztägiges Ereignis",
    "Toute la journée|Journée entière|Journée complète",
    "Todo el día|Día completo",
    "Tutto il giorno|Giornata intera|Intera giornata",
    "Dia inteiro|O dia todo|Evento de dia inteiro",
    "Hele dag|De hele dag",
    "終日|全日|終日イベント",
)
TIME_ZONE: Final = (
    "Time zone|Timezone|TZ|TZID",
    "Zeitzone",
    "Fuseau horaire",
    "Zona horaria|Huso horario",
    "Fuso orario",
    "Fuso horário",
    "Tijdzone",
    "タイムゾーン|時間帯",
)
CATEGORIES: Final = (
    "Categories|Category|Event Category|Type|Genre|Event Categories",
    "Kategorien|Kategorie|Rubrik|Sparte|Art|Genre|Veranstaltungsart|Veranstaltungskategorie",
    "Catégories|Catégorie|Rubrique|Type|Genre",
    "Categorías|Categoría|Tipo|Género|Rubro",
    "Categorie|Categoria|Tipo|Genere|Rubrica",
    "Categorias|Categoria|Tipo|Gênero",
    "Categorieën|Categorie|Soort|Genre|Rubriek",
    "カテゴリー|カテゴリ|分類|種別|ジャンル",
)
TAGS: Final = (
    "Tags|Tag|Keywords|Event Tags",
    "Schlagwörter|Schlagworte|Schlagwort|Stichwörter|Stichworte|Tags",
    "Étiquettes|Étiquette|Mots-clés|Mots clés|Tags",
    "Etiquetas|Etiqueta|Palabras clave|Tags",
    "Tag|Etichette|Parole chiave|Tags",
    "Tags|Etiquetas|Palavras-chave|Marcadores",
    "Tags|Trefwoorden|Labels|Steekwoorden",
    "タグ|キーワード",
)
COST: Final = (
    "Cost|Price|Admission|Fee|Tickets|Entry",
    "Preis|Eintritt|Kosten|Eintrittspreis|Gebühr",
    "Prix|Tarif|Coût|Entrée|Tarifs",
    "Precio|Coste|Costo|Entrada|Tarifa",
    "Prezzo|Costo|Ingresso|Tariffa|Biglietto",
    "Preço|Custo|Ingresso|Valor|Entrada",
    "Prijs|Kosten|Toegang|Entree|Toegangsprijs",
    "料金|費用|参加費|入場料|価格",
)
CURRENCY_SYMBOL: Final = (
    "Currency symbol",
    "Währungssymbol|Währungszeichen",
    "Symbole monétaire|Symbole de la devise",
    "Símbolo de moneda|Símbolo de la moneda",
    "Simbolo valuta|Simbolo della valuta",
    "Símbolo da moeda",
    "Valutasymbool|Valutateken",
    "通貨記号",
)
CURRENCY_CODE: Final = (
    "Currency code|Currency|ISO Currency Code",
    "Währungscode|Währung",
    "Code de devise|Devise|Monnaie",
    "Código de moneda|Moneda",
    "Codice valuta|Valuta",
    "Código da moeda|Moeda",
    "Valutacode|Valuta",
    "通貨コード|通貨",
)
CURRENCY_POSITION: Final = (
    "Currency position",
    "Währungsposition|Position der Währung",
    "Position de la devise",
    "Posición de la moneda",
    "Posizione valuta|Posizione della valuta",
    "Posição da moeda",
    "Valutapositie",
    "通貨記号の位置|通貨の位置",
)
TICKETS: Final = (
    "Ticket URL|Ticket Link|Tickets URL|Booking URL|Booking|Registration|Registration URL",
    "Ticketlink|Ticket-URL|Karten|Vorverkauf|Anmeldung|Buchung|Anmeldelink|Tickets",
    "Billetterie|Lien de réservation|Réservation|Inscription|Billets",
    "Enlace de entradas|Venta de entradas|Reserva|Inscripción|Entradas",
    "Link biglietti|Biglietteria|Prenotazione|Iscrizione|Biglietti",
    "Link de ingressos|Venda de ingressos|Reserva|Inscrição|Ingressos",
    "Ticketlink|Kaartverkoop|Reserveren|Aanmelden|Tickets",
    "チケットURL|申込URL|予約URL|申込|予約|チケット",
)
ONLINE: Final = (
    "Online URL|Stream|Stream URL|Online Link|Virtual URL|Meeting Link|Livestream",
    "Online-Link|Online-URL|Livestream|Stream|Online-Adresse",
    "Lien en ligne|URL en ligne|Diffusion en direct|Visioconférence",
    "Enlace en línea|URL en línea|Transmisión|Enlace online",
    "Link online|URL online|Diretta|Streaming",
    "Link online|URL online|Transmissão|Link da transmissão",
    "Online link|Online-URL|Onlinelink|Livestream",
    "オンラインURL|配信URL|オンライン|参加URL",
)
EVENT_STATUS: Final = (
    "Event status|State of Event|Takes Place",
    "Veranstaltungsstatus|Terminstatus|Zustand",
    "Statut de l'événement|État de l'événement",
    "Estado del evento",
    "Stato dell'evento|Stato evento",
    "Situação do evento|Status do evento",
    "Status evenement|Evenementstatus",
    "開催状況|開催ステータス",
)
STATUS_REASON: Final = (
    "Status reason|Reason",
    "Statusgrund|Grund|Begründung",
    "Motif du statut|Motif|Raison",
    "Motivo del estado|Motivo|Razón",
    "Motivo dello stato|Motivo",
    "Motivo da situação|Motivo",
    "Reden van status|Reden",
    "状況の理由|理由",
)
FEATURED: Final = (
    "Featured|Feature Event|Featured Event|Highlight",
    "Hervorgehoben|Hervorheben|Highlight|Empfohlen|Empfehlung",
    "Mis en avant|À la une|En vedette",
    "Destacado|Evento destacado",
    "In evidenza|Evento in evidenza",
    "Destaque|Destacado|Em destaque",
    "Uitgelicht|Aanbevolen",
    "注目|おすすめ|注目イベント",
)
STICKY: Final = (
    "Sticky|Sticky in Month View",
    "Angeheftet|In der Monatsansicht angeheftet|Anheften",
    "Épinglé|Épinglé dans la vue mensuelle",
    "Fijado|Fijo en la vista mensual",
    "Fissato|Fissato nella vista mensile",
    "Fixado|Fixo na visão mensal",
    "Vastgezet|Vastgezet in maandweergave",
    "固定表示|先頭に固定",
)
HIDDEN: Final = (
    "Hidden from lists|Hide Event From Event Listings|Hide From Event Listings|Hide From Listings|Hidden",
    "In Listen ausblenden|Ausblenden|Versteckt|Verborgen",
    "Masqué dans les listes|Masquer dans les listes|Masqué",
    "Oculto en las listas|Ocultar en las listas|Oculto",
    "Nascosto negli elenchi|Nascondi negli elenchi|Nascosto",
    "Oculto nas listas|Ocultar nas listas|Oculto",
    "Verborgen in lijsten|Verbergen in lijsten|Verborgen",
    "一覧に表示しない|非表示|一覧で非表示",
)
