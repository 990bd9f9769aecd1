"""Words in the cells of tables in eight languages: months, yes and no, halves of the day, statuses."""

from typing import Final

# One row per language; names and abbreviations of a month are separated by a bar.
MONTHS: Final = (
    (
        *("january|jan", "february|feb", "march|mar", "april|apr", "may", "june|jun"),
        *("july|jul", "august|aug", "september|sep|sept", "october|oct", "november|nov", "december|dec"),
    ),
    (
        *("januar|jänner|jan|jän", "februar|feber|feb", "märz|maerz|mär|mrz", "april|apr", "mai", "juni|jun"),
        *("juli|jul", "august|aug", "september|sep|sept", "oktober|okt", "november|nov", "dezember|dez"),
    ),
    (
        *("janvier|janv", "février|févr|fév", "mars", "avril|avr", "mai", "juin"),
        *("juillet|juil", "août", "septembre|sept", "octobre|oct", "novembre|nov", "décembre|déc"),
    ),
    (
        *("enero|ene", "febrero|feb", "marzo|mar", "abril|abr", "mayo|may", "junio|jun"),
        *("julio|jul", "agosto|ago", "septiembre|setiembre|sep|sept|set", "octubre|oct", "noviembre|nov"),
        "diciembre|dic",
    ),
    (
        *("gennaio|gen", "febbraio|feb", "marzo|mar", "aprile|apr", "maggio|mag", "giugno|giu"),
        *("luglio|lug", "agosto|ago", "settembre|set|sett", "ottobre|ott", "novembre|nov", "dicembre|dic"),
    ),
    (
        *("janeiro|jan", "fevereiro|fev", "março|mar", "abril|abr", "maio|mai", "junho|jun"),
        *("julho|jul", "agosto|ago", "setembro|set", "outubro|out", "novembro|nov", "dezembro|dez"),
    ),
    (
        *("januari|jan", "februari|feb", "maart|mrt", "april|apr", "mei", "juni|jun"),
        *("juli|jul", "augustus|aug", "september|sep|sept", "oktober|okt", "november|nov", "december|dec"),
    ),
)
_YES: Final = (
    "yes y true 1 on x ✓ ✔ ☑ ja j wahr oui o vrai si s verdadero vero sim verdadeiro waar はい 有 あり ○ 〇 ◯ 真"
)
_NO: Final = "no n false 0 off - – ☐ nein falsch non faux falso nao nee onwaar いいえ 無 なし × ✗ ✘ 偽"
# By folded word.
FLAGS: Final = {**dict.fromkeys(_YES.split(), True), **dict.fromkeys(_NO.split(), False)}
HALVES: Final = {"am": "am", "pm": "pm", "午前": "am", "午後": "pm"}
# Words between a date and a time.
CONNECTORS: Final = (
    "t",
    "um ",
    "ab ",
    "at ",
    "from ",
    "kl. ",
    "a las ",
    "alle ore ",
    "alle ",
    "ore ",
    "as ",
    "a ",
    "om ",
)


def _list_words(by_value: dict[str, str]) -> dict[str, str]:
    return {word: value for value, words in by_value.items() for word in words.split("|")}


# Statuses of records by folded word.
STATUSES: Final = _list_words(
    {
        "publish": "published|veroffentlicht|offentlich|publie|publicado|pubblicato|gepubliceerd|公開|公開済み",
        "draft": "entwurf|brouillon|borrador|bozza|rascunho|concept|下書き",
        "pending": "pending review|en attente|pendiente|in attesa|pendente|in afwachting|承認待ち",
        "private": "privat|prive|privado|privato|非公開",
    }
)
# States of events by folded word.
EVENT_STATES: Final = _list_words(
    {
        "scheduled": "confirmed|geplant|bestatigt|prevu|confirme|programado|confirmado|confermato|gepland|開催",
        "cancelled": "canceled|abgesagt|fallt aus|annule|cancelado|annullato|afgelast|geannuleerd|中止",
        "postponed": "rescheduled|verschoben|reporte|aplazado|pospuesto|rinviato|adiado|uitgesteld|延期",
        "moved_online": "online|online statt|en ligne|en linea|in linea|オンライン|オンライン開催",
        "sold_out": "soldout|ausverkauft|complet|agotado|esaurito|esgotado|uitverkocht|完売|満席",
    }
)
POSITIONS: Final = _list_words(
    {
        "prefix": "before|davor|vor|avant|antes|prima|voor|前",
        "postfix": "suffix|after|danach|nach|apres|despues|dopo|depois|achter|後",
    }
)
