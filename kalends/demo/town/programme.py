"""Larkford's program: what takes place, where, on which weekday and how often.

A slot repeats at an interval of weeks and goes through its items in turn. Weeks are counted from a fixed Monday, so
the same day always has the same program. All texts are original.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kalends.proposals.rules import Origin

MON, TUE, WED, THU, FRI, SAT, SUN = range(7)


@dataclass(frozen=True, slots=True)
class Item:
    title: str
    text: str
    cost: str | None = None  # None means the slot's cost
    featured: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A recurring time slot. `start` is a time of day. With `days` instead of `minutes`, items last whole days."""

    category: str
    venue: str
    organizer: str
    weekday: int
    items: tuple[Item, ...]
    start: str = ""
    minutes: int = 0
    days: int = 0
    every: int = 1  # interval in weeks
    phase: int = 0  # week offset within the interval
    months: tuple[int, ...] = ()  # empty means all months
    cost: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""  # a second paragraph that all items share
    has_picture: bool = True
    scene: str = ""  # picture scene; empty means the category's scene


COUNCIL, ARTS, STATION_YARD = "Larkford Town Council", "Larkford Arts Trust", "Station Yard Community Trust"
PLAYHOUSE, FILM_CLUB, MUSEUM = "Playhouse Company", "Picture House Film Club", "Larkford Museum Society"
TRADERS, RIVER, SPORTS = "Market Traders’ Association", "Friends of the River Lark", "Larkford Sports Association"

# Two long descriptions with headings and lists.
MARKET_TEXT: Final = """<p>Forty stalls with vegetables from the valley, bread, cheese, fish, plants and the knife
grinder. The market has been held in the square since 1291, and the oldest stall has been in the same family for six
generations.</p>
<h3>What you’ll find</h3>
<ul>
<li>North side: fruit and vegetables, most of them grown within ten miles. Ask for the seconds at noon; they cost half
and make better jam.</li>
<li>By the fountain: bread from two bakeries, cheese from the hills, and coffee from the blue van. Bring a cup and save
thirty pence.</li>
<li>Town Hall steps: plants, cut flowers and honey. Seedlings come in April, wreaths in December.</li>
<li>South side: fish on ice from the coast, eggs, and sausages that sell out by ten.</li>
<li>Under the arches: the knife grinder, the key cutter and a man who mends umbrellas. Leave your things when you
arrive and collect them on your way home.</li>
</ul>
<h3>Getting here</h3>
<p>The bus station is two minutes away in Chapel Lane, and there are racks for sixty bicycles beside the Corn Exchange.
If you come by car, use the car park at Station Yard: it’s free until one on market days, and a path without steps leads
to the square. Two spaces for blue badge holders are kept free in Castle Street.</p>
<h3>Good to know</h3>
<p>Most stalls take cards, but not all of them do when the signal drops, so bring some coins. Dogs on a lead are welcome
everywhere except at the fish. There’s a tap for water bottles at the fountain, and toilets are open in the Town Hall
until two. If you’d like a stall of your own, come to the blue van at seven in the morning with a photograph of what you
sell: three pitches are kept for people who are trying it for the first time, and the first Saturday is free.</p>"""
QUARTET_TEXT: Final = """<p>Haydn, Bartók and a new quartet by Ines Carver, who grew up on Mill Street and wrote it
for this room.</p>
<h3>The programme</h3>
<ol>
<li>Joseph Haydn: String Quartet in D major, “The Lark”. It begins with three players keeping time until the fourth
takes off above them, and it gave our river half of its jokes.</li>
<li>Béla Bartók: String Quartet No. 3. Fifteen minutes without a pause, as tight as a drum and, at the end, nearly as
loud as one.</li>
<li>Ines Carver: <em>Weir Songs</em> (first performance). Five short movements that follow the water from the hills to
the sea. In the fourth, the players leave the stage one by one and go on playing in the foyer.</li>
</ol>
<h3>The players</h3>
<p>The four met in a shared house in Harrow Lane, where the landlord allowed practice until nine and then knocked on the
ceiling. They’ve played together for eleven years, in village halls as gladly as in the large rooms of the country, and
have recorded all the quartets of Fanny Hensel. On the afternoon of the concert they teach at the music school; pupils
who bring an instrument may sit in for half an hour.</p>
<h3>Before and after</h3>
<p>At 6:45 pm the composer talks with the viola player about writing for a room that she knows from school concerts. The
talk takes about twenty minutes, is free with your ticket, and is interpreted into sign language. Afterwards everyone
meets at the bar, where there’s soup until eleven.</p>
<h3>Seats</h3>
<p>The stalls are level and can be reached from Chapel Lane without a step. Spaces for wheelchairs are in rows C and K;
please tell the box office, so that we can take a chair out. The hearing loop works in every row. Latecomers are shown
in after the Haydn, so if you’re running late, there’s no need to hurry across the square.</p>"""

EVERY_WEEK: Final = (
    Slot("Markets", "Market Square", TRADERS, SAT, start="08:00", minutes=360, cost="0", tags=("outdoors", "local"),
         items=(Item("Saturday market", MARKET_TEXT),),
         note="The market takes place in any weather. Market Square is closed to cars from 6 am to 4 pm."),
    Slot("Families", "Larkford Library", "Larkford Library", WED, start="10:30", minutes=45, cost="0",
         tags=("under fives",),
         items=(Item("Story time", "Songs, rhymes and two picture books for children up to five and whoever comes with"
                     " them. Stay for a cup of tea afterwards."),)),
    Slot("Courses", "Station Yard Community Centre", STATION_YARD, TUE, start="18:30", minutes=75, cost="7",
         tags=("beginners welcome",), scene="yoga",
         items=(Item("Yoga after work", "A quiet hour for stiff backs. Mats are provided; wear something you can"
                     " stretch in. Come to a single evening or buy a card for ten."),)),
    Slot("Courses", "Old Mill Arts Centre", ARTS, THU, start="19:00", minutes=120, cost="14", tags=("craft",),
         items=(Item("Pottery evening", "Throwing, building and glazing under the eye of a potter. Clay and firing are"
                     " included. Eight wheels, so please book."),)),
    Slot("Courses", "Station Yard Community Centre", STATION_YARD, MON, start="10:00", minutes=90, cost="0",
         tags=("newcomers",), has_picture=False,
         items=(Item("English conversation", "Small groups, simple topics and no homework. For everybody who has moved"
                     " here and wants to speak with more confidence."),)),
    Slot("Sport", "Riverside Park", SPORTS, SUN, start="09:00", minutes=60, cost="0", tags=("outdoors",),
         scene="running",
         items=(Item("Five kilometres by the river", "Run, jog or walk two laps of the park. The last one home gets as"
                     " much applause as the first. Meet at the bandstand."),)),
    Slot("Music", "St Anne’s Church", "Larkford Choral Society", MON, start="19:30", minutes=120, cost="0",
         tags=("singing",), has_picture=False,
         items=(Item("Choral Society: open rehearsal", "Come and sit among the singers. No audition; reading music"
                     " helps but is not required. We are working on the concert at the end of the term."),)),
    Slot("Town life", "Station Yard Community Centre", STATION_YARD, FRI, start="12:00", minutes=90, cost="0",
         tags=("warm room",), has_picture=False,
         items=(Item("Community lunch", "Soup, bread and company at long tables. Pay what you like. Volunteers start"
                     " to peel vegetables at ten."),)),
)  # fmt: skip

IN_TURN: Final = (
    Slot("Music", "Corn Exchange", ARTS, FRI, start="19:30", minutes=135, cost="18", tags=("evening",),
         note="Doors open at 7 pm. Under 26 half price; carers come in free.",
         items=(
             Item("Harrow Lane String Quartet", QUARTET_TEXT, featured=True),
             Item("The Brass Sparrows", "Eleven players, no amplifiers: street music from New Orleans to Naples."
                  " Leave your seat whenever you feel like it."),
             Item("Mara Quill and Band", "Songs about ferries, allotments and leaving home, with fiddle, double bass"
                  " and a borrowed harmonium."),
             Item("Piano recital: Tobias Wren", "Schubert’s last sonata, and after the break a handful of short pieces"
                  " that the pianist chooses on the night."),
             Item("An evening of klezmer", "Clarinet, accordion and violin with the Lantern Trio. The second half is"
                  " for dancing, and the chairs are moved."),
             Item("Northern Light Voices", "Music for eight voices from five centuries, sung from all corners of the"
                  " hall.", featured=True),
             Item("Kofi Mensah Quintet", "Highlife and jazz from a trumpet player who can whisper. First visit to"
                  " Larkford."),
         )),
    Slot("Music", "The Bell Inn", ARTS, THU, start="20:00", minutes=150, cost="6", every=2, tags=("evening", "folk"),
         scene="folk",
         items=(
             Item("Folk club: singers’ night", "Everybody who wants to gets two songs. Listeners are as welcome as"
                  " singers; the room holds fifty."),
             Item("Folk club: Wilder and Finch", "Two voices and a cittern with songs from the Marches, some of them"
                  " older than the pub."),
             Item("Folk club: tune session", "Bring an instrument and play along. The slow half hour at the beginning"
                  " is for beginners.", cost="0"),
         )),
    Slot("Music", "St Anne’s Church", "Larkford Choral Society", WED, start="13:00", minutes=40, cost="0",
         tags=("lunchtime", "organ"), scene="organ",
         items=(
             Item("Lunchtime organ: Bach", "Forty minutes of preludes and fugues on the organ of 1764."),
             Item("Lunchtime organ: dances", "Gigues, sarabandes and one tango. Sandwiches are tolerated in the"
                  " back pews."),
             Item("Lunchtime organ: improvisations", "Write a tune on a slip of paper at the door; the organist"
                  " makes something of it."),
             Item("Lunchtime harp", "Welsh airs and French miniatures, played on a harp that needed four people to"
                  " bring in."),
         )),
    Slot("Theatre", "Playhouse", PLAYHOUSE, FRI, start="19:30", minutes=140, cost="9 - 16", every=2,
         tags=("evening", "stage"), note="The bar opens at 6:45 pm. There is one interval.",
         items=(
             Item("The Clockmaker’s Daughter", "A family comedy about a town that lost an hour and did not want it"
                  " back. New production of the Playhouse Company.", featured=True),
             Item("Seven Chairs", "Seven neighbours wait for a meeting to begin. A short, sharp play about who gets to"
                  " speak first."),
             Item("Salt and Honey", "Two sisters inherit a shop and a secret. With live music on stage."),
             Item("Improvised Shakespeare", "You shout a title; six actors do the rest, in verse, more or less."),
         )),
    Slot("Theatre", "Playhouse", PLAYHOUSE, SAT, start="19:30", minutes=140, cost="9 - 16", every=2,
         tags=("evening", "stage"), note="The bar opens at 6:45 pm. There is one interval.",
         items=(
             Item("The Clockmaker’s Daughter", "A family comedy about a town that lost an hour and did not want it"
                  " back. The performance is audio-described."),
             Item("Seven Chairs", "Seven neighbours wait for a meeting to begin. The cast stays for questions"
                  " afterwards."),
             Item("Salt and Honey", "Two sisters inherit a shop and a secret. With live music on stage. Last"
                  " performance."),
             Item("Improvised Shakespeare", "You shout a title; six actors do the rest, in verse, more or less. A new"
                  " play every night."),
         )),
    Slot("Film", "Picture House", FILM_CLUB, TUE, start="19:45", minutes=125, cost="8.50", tags=("evening",),
         items=(
             Item("Film club: The Last Ferry", "A captain, a retiring ship and one more crossing. With English"
                  " subtitles."),
             Item("Film club: Paper Lions", "Animated with forty thousand cuttings from old newspapers. The director"
                  " sends a greeting."),
             Item("Film club: A House by the Canal", "Black and white, from 1958, on a print that has hardly been"
                  " shown since."),
             Item("Film club: Night Trains", "A documentary about people who work while others sleep. Discussion with"
                  " two signallers afterwards."),
             Item("Film club: Orchard", "One year in the life of a cider orchard, without a single spoken word."),
             Item("Film club: The Understudy", "A thriller in a theatre, shown two hundred yards from a real one."),
         )),
    Slot("Film", "Picture House", FILM_CLUB, SAT, start="10:30", minutes=95, cost="4", every=2, tags=("under twelves",),
         items=(
             Item("Saturday morning film: The Snow Hare", "For everybody from five. The lights stay on a little, and"
                  " nobody minds a question."),
             Item("Saturday morning film: Captain Thimble", "Pirates the size of a thumb. A relaxed screening with"
                  " lower sound."),
         )),
    Slot("Talks & books", "Larkford Museum", MUSEUM, THU, start="18:30", minutes=75, cost="5", tags=("history",),
         scene="timepiece", note="The museum stays open until 8 pm on Thursdays.",
         items=(
             Item("How the railway came to Larkford", "And why the station is half a mile from the town. With maps"
                  " that the company tried to lose."),
             Item("Wool, water, paper: a town and its mill", "Three hundred years of work at the weir, told from wage"
                  " books and letters."),
             Item("Reading old handwriting", "A gentle introduction for family historians. Bring a letter that you"
                  " cannot read.", cost="0"),
             Item("The great flood of 1947", "Photographs that have not been shown before, and four people who were"
                  " there."),
             Item("What the clock knows", "The keeper of the tower clock explains three hundredweight of iron, and"
                  " lets you wind it."),
         )),
    Slot("Talks & books", "The Weir Bookshop", "The Weir Bookshop", WED, start="19:00", minutes=90, cost="6",
         tags=("reading",),
         items=(
             Item("Ruth Anand reads from “Ten Winters”", "A novel about a lighthouse, a quarrel and a very long"
                  " correspondence. Signed copies at the till."),
             Item("Book club: The Borrowed Garden", "We talk about it whether you have finished it or not. Biscuits"
                  " are provided.", cost="0"),
             Item("Poetry by the fire", "Six local poets, ten minutes each. There is a fire, and there are blankets."),
             Item("Omar Haddad: A Short History of Windows", "Who invented the view? An architect reads, shows slides"
                  " and answers questions."),
         )),
    Slot("Nature & walks", "Riverside Park", RIVER, SUN, start="10:30", minutes=120, cost="0", tags=("outdoors",),
         note="Wear sturdy shoes. Children come with an adult; dogs stay on a lead.",
         items=(
             Item("Guided walk: otters and kingfishers", "Along the Lark to the second weir and back, slowly and with"
                  " binoculars, which you can borrow."),
             Item("Guided walk: trees in the town", "The oldest lime, the youngest oak and the pear tree in the car"
                  " park."),
             Item("Riverbank working party", "Clear brambles, mend the path, drink tea. Gloves and tools are"
                  " provided."),
             Item("Guided walk: the town walls", "All that is left of them, and what was built from the rest. Two"
                  " miles, some steps."),
         )),
    Slot("Families", "Old Mill Arts Centre", ARTS, SUN, start="14:00", minutes=120, cost="3", tags=("craft",),
         scene="boats",
         items=(
             Item("Family workshop: kites", "Build a kite from bamboo and paper and try it on the meadow next door."),
             Item("Family workshop: printing", "Carve a potato, ink it, print a poster. Wear old clothes."),
             Item("Family workshop: shadow puppets", "Cut, joint and stage your own story on a lit screen."),
             Item("Family workshop: paper boats", "Fold them, wax them, race them on the mill leat."),
         )),
    Slot("Sport", "Bridge Lane Ground", SPORTS, SAT, start="15:00", minutes=110, cost="4 - 9", every=2,
         months=(8, 9, 10, 11, 12, 1, 2, 3, 4, 5), tags=("football",),
         items=(
             Item("Larkford Town v Ashby Rovers", "County League. Ashby won the first leg; the supporters’ coach has"
                  " been told where to park."),
             Item("Larkford Town v Wendle United", "County League. The clubhouse opens at two, pies from half past."),
             Item("Larkford Town v St Bride’s", "County Cup, second round. Extra time if needed."),
         )),
    Slot("Sport", "Leisure Centre", SPORTS, WED, start="18:00", minutes=90, cost="5", tags=("indoors",),
         items=(
             Item("Climbing for beginners", "Two instructors, ten ropes. Shoes and harness are included."),
             Item("Table tennis evening", "Eight tables, bats to borrow, and a ladder competition for the ambitious."),
         )),
    Slot("Food & drink", "Station Yard Community Centre", STATION_YARD, FRI, start="18:30", minutes=150, cost="12",
         every=2, tags=("cooking",),
         items=(
             Item("Cook together: Damascus", "Four families from Syria show how they make kibbeh and fattoush. Then"
                  " we eat it."),
             Item("Cook together: dumplings of the world", "Pierogi, jiaozi and momo at three tables. You fold, you"
                  " boil, you compare."),
             Item("Cook together: bread", "Sourdough from the starter to the crust. You take a loaf and a jar home."),
         )),
    Slot("Town life", "Town Hall", COUNCIL, TUE, start="19:00", minutes=120, cost="0", every=2, tags=("public",),
         note="The agenda and the papers are published five days before. The first fifteen minutes belong to questions"
              " from the public.",
         items=(
             Item("Town council meeting", "Open to everybody. On the agenda: Market Square after the resurfacing, the"
                  " budget for parks, and bus times."),
             Item("Planning committee", "Open to everybody. Applications of this month, among them the shop front at"
                  " 18 Broad Street."),
         )),
)  # fmt: skip

EVERY_MONTH: Final = (
    Slot("Town life", "Station Yard Community Centre", STATION_YARD, SAT, start="10:00", minutes=180, cost="0",
         every=4, phase=1, tags=("volunteers",),
         items=(Item("Repair café", "Bring what is broken: toasters, trousers, bicycles, lamps. Volunteers mend it with"
                     " you, free of charge, over coffee."),)),
    Slot("Markets", "Market Square", TRADERS, SUN, start="09:00", minutes=360, cost="0", every=4, phase=2,
         tags=("outdoors", "vintage"),
         items=(Item("Flea market", "Eighty private stalls with records, crockery, tools and things without a name."
                     " Set-up from seven; no new goods.", featured=True),)),
    Slot("Markets", "Corn Exchange", TRADERS, SUN, start="10:00", minutes=360, cost="2", every=8, phase=5,
         tags=("craft",),
         items=(Item("Makers’ market", "Ceramics, prints, textiles and jewellery from fifty workshops in the county."
                     " Most makers are there in person."),)),
    Slot("Food & drink", "Market Square", TRADERS, FRI, start="17:00", minutes=270, cost="0", every=4, phase=3,
         months=(4, 5, 6, 7, 8, 9, 10), tags=("outdoors", "evening"),
         items=(Item("Street food evening", "Twelve kitchens on wheels, long tables and a band on the Town Hall"
                     " steps.", featured=True),)),
    Slot("Food & drink", "The Bell Inn", "The Weir Bookshop", TUE, start="20:00", minutes=120, cost="2", every=4,
         phase=2, tags=("quiz",),
         items=(Item("Pub quiz", "Eight rounds, teams of up to six, no telephones. The winners choose the charity."),)),
    Slot("Town life", "Town Hall", COUNCIL, THU, start="14:00", minutes=150, cost="0", every=4, tags=("advice",), has_picture=False,
         items=(Item("Advice afternoon", "Energy bills, housing, forms: sit down with somebody who knows. No"
                     " appointment needed; interpreters on request."),)),
    Slot("Families", "Castle Gardens", RIVER, SAT, start="14:00", minutes=120, cost="0", every=4, phase=3,
         tags=("outdoors",),
         items=(Item("Junior rangers", "For explorers from seven to eleven: ponds, nests and what lives under the"
                     " stones. Wellingtons recommended."),)),
    Slot("Talks & books", "Larkford Library", "Larkford Library", MON, start="18:00", minutes=90, cost="0", every=4,
         phase=1, tags=("writing",), has_picture=False,
         items=(Item("Writers’ group", "Read a page, get an honest answer. New members sit in for one evening"
                     " first."),)),
    Slot("Music", "Corn Exchange", "Larkford Choral Society", SAT, start="19:30", minutes=120, cost="12 - 22", every=8,
         phase=4, tags=("choir", "evening"), note="Doors open at 7 pm. Under 26 half price; carers come in free.",
         items=(
             Item("Choral Society: Messiah", "Ninety singers, the County Sinfonia, and you in the Hallelujah, if you"
                  " like.", featured=True),
             Item("Choral Society: a Brahms Requiem", "Sung in the composer’s own version with two pianos.",
                  featured=True),
         )),
)  # fmt: skip

SEVERAL_DAYS: Final = (
    Slot("Exhibitions", "Old Mill Arts Centre", ARTS, SAT, days=37, every=6, cost="0", tags=("art",),
         note="Open from Tuesday to Sunday, 10 am to 5 pm.",
         items=(
             Item("Light on water: forty years of prints", "Woodcuts and linocuts by Edith Marlowe, who walked the"
                  " same bend of the river every morning.", featured=True),
             Item("Made of paper", "Twelve artists from eight countries fold, cut, burn and weave the material that"
                  " this mill once made."),
             Item("The open exhibition", "One hundred works by people from Larkford, chosen by lot. Vote for your"
                  " favourite."),
         )),
    Slot("Exhibitions", "Larkford Museum", MUSEUM, TUE, days=48, every=8, phase=3, cost="6", tags=("history",),
         note="Open from Tuesday to Sunday, 10 am to 5 pm. Children come in free.",
         items=(
             Item("Toys from a hundred attics", "Tin trains, rag dolls and a castle with a working drawbridge, lent by"
                  " people of the town.", featured=True),
             Item("Larkford from above", "Aerial photographs from 1921 to today, from balloon to drone."),
         )),
    Slot("Exhibitions", "Larkford Library", "Larkford Library", MON, days=20, every=4, phase=1, cost="0",
         tags=("photography",),
         items=(
             Item("Portraits of shopkeepers", "Photographs by students of the sixth form, taken behind the counters of"
                  " Broad Street."),
             Item("Maps that got it wrong", "Islands that do not exist and a Larkford on the wrong bank."),
         )),
    Slot("Festivals", "Riverside Park", ARTS, FRI, days=3, every=8, phase=6, months=(5, 6, 7, 8, 9), cost="15 - 45",
         tags=("outdoors", "weekend"),
         items=(Item("River festival", "Three days of music on two stages, boats with lanterns on Saturday night, and a"
                     " raft race that nobody has ever won dry.", featured=True),)),
    Slot("Festivals", "Corn Exchange", ARTS, THU, days=4, every=10, phase=4, cost="8 - 30", tags=("weekend", "reading"),
         items=(
             Item("Larkford book festival", "Thirty authors in six places, a tent for children and a night of poems"
                  " that ends when the last one is read.", featured=True),
             Item("Chamber music weekend", "Nine concerts in four days, with breakfast, lunch and midnight"
                  " programmes.", featured=True),
         )),
    Slot("Festivals", "Market Square", COUNCIL, FRI, days=3, every=2, months=(12,), cost="0",
         tags=("outdoors", "winter"),
         items=(Item("Winter lights", "Lanterns in every window of the square, carols on the Town Hall steps at six,"
                     " and roast chestnuts until they are gone.", featured=True),)),
    Slot("Festivals", "Castle Gardens", RIVER, SAT, days=2, every=6, phase=1, months=(3, 4, 9, 10, 11), cost="0",
         tags=("outdoors", "weekend"),
         items=(Item("Apple days", "Press your own juice, taste forty varieties, and have the tree in your garden named"
                     " by people who know."),)),
    Slot("Sport", "Leisure Centre", SPORTS, SAT, days=2, every=10, phase=7, cost="0", tags=("weekend",),
         items=(Item("Chess weekend", "Seven rounds in three classes, a simultaneous display, and a corner with giant"
                     " pieces for children."),)),
)  # fmt: skip

# Changes to single dates of weekly items: fields by title and by the number of the date after today.
CHANGED_DATES: Final = {
    "Story time": {
        1: {
            "start_date": "{day} 14:30:00",
            "end_date": "{day} 15:15:00",
            "excerpt": "In the afternoon this week: the morning belongs to the school’s visit.",
        },
        2: {"event_status": "cancelled", "status_reason": "The library is closed for stocktaking."},
    },
    "Choral Society: open rehearsal": {
        1: {
            "event_status": "cancelled",
            "status_reason": "The church heating has broken down. We meet again next Monday.",
        },
    },
    "Five kilometres by the river": {
        1: {
            "event_status": "postponed",
            "status_reason": "The riverside path is flooded. We’ll announce the new date here.",
        },
    },
    "Pottery evening": {
        1: {
            "event_status": "sold_out",
            "status_reason": "All eight wheels are taken. Places may become free at short notice: ask at the desk.",
        },
    },
    "Yoga after work": {
        1: {
            "event_status": "moved_online",
            "status_reason": "The hall is a polling station on this day, so the teacher comes to your living room.",
            "online_url": "https://meet.example.org/yoga-after-work",
        },
    },
}
# Extra dates of weekly items, in days after their next date.
EXTRA_DATES: Final = {"Story time": (10,)}
PROGRAMME: Final = (*EVERY_WEEK, *IN_TURN, *EVERY_MONTH, *SEVERAL_DAYS)


@dataclass(frozen=True, slots=True)
class Submission:
    """An event that is not published yet, `weeks` after this week. `login` is its author."""

    login: str
    status: str
    weeks: int
    slot: Slot


WRITERS: Final = {"rosa": "contributor", "tom": "author"}
SUBMISSIONS: Final = (
    Submission("rosa", "pending", 1, Slot(
        "Families", "Castle Gardens", RIVER, SAT, start="11:00", minutes=90, cost="0", has_picture=False,
        items=(Item("Hedgehog houses", "We build shelters from crates and leaves, and you take one home. Bring gloves;"
                    " we have hammers in small sizes."),))),
    Submission("rosa", "pending", 2, Slot(
        "Music", "The Bell Inn", ARTS, SUN, start="16:00", minutes=120, cost="0", has_picture=False,
        items=(Item("Ukulele afternoon", "Three chords are enough. We have six instruments to lend; the first hour is"
                    " for people who have never held one."),))),
    Submission("rosa", "pending", 2, Slot(
        "Talks & books", "Larkford Library", "Larkford Library", TUE, start="17:30", minutes=60, cost="0", has_picture=False,
        items=(Item("Letters from a lighthouse", "The keeper’s granddaughter reads from forty years of letters and shows"
                    " the lamp that he took home."),))),
    Submission("rosa", "pending", 3, Slot(
        "Town life", "Station Yard Community Centre", STATION_YARD, SAT, start="13:00", minutes=180, cost="0", has_picture=False,
        items=(Item("Clothes swap", "Bring up to five things that are clean and whole, and take five others home. What"
                    " is left goes to the charity shop."),))),
    Submission("rosa", "pending", 4, Slot(
        "Nature & walks", "Riverside Park", RIVER, FRI, start="20:30", minutes=90, cost="3", has_picture=False,
        items=(Item("Bats over the weir", "A walk with four detectors. Daubenton’s bats hunt a hand’s breadth above the"
                    " water, and you can hear them do it."),))),
    Submission("tom", "draft", 2, Slot(
        "Exhibitions", "Larkford Museum", MUSEUM, THU, start="18:00", minutes=90, cost="5", has_picture=False,
        items=(Item("Curator’s tour", "Text to follow."),))),
    Submission("tom", "draft", 3, Slot(
        "Courses", "", ARTS, SAT, start="10:00", minutes=360, cost="35", has_picture=False,
        items=(Item("Bookbinding in a day", "One sewn notebook and one that opens like an accordion. We’re still looking"
                    " for a room with large tables."),))),
    Submission("tom", "draft", 5, Slot(
        "Festivals", "Market Square", COUNCIL, SUN, start="12:00", minutes=300, cost="0", has_picture=False,
        items=(Item("Lantern parade", ""),))),
    Submission("tom", "future", 6, Slot(
        "Film", "Picture House", FILM_CLUB, SUN, start="17:00", minutes=150, cost="8.50", has_picture=False,
        items=(Item("Silent film with live piano", "The general keeps his train, the pianist keeps up with him. Sold as"
                    " one ticket with a glass of cider."),))),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A proposal by a person or program without the right to publish, with the parameters of its event.

    `days` is when it takes place from today. With `of`, it is about the event with this place among the next ones: a
    change of the event, or a second entry for it that has its start.
    """

    origin: Origin
    values: Mapping[str, object]
    days: int = 0
    of: int | None = None
    is_duplicate: bool = False
    login: str = ""
    sender: str = ""
    note: str = ""
    source: str = ""
    guessed: tuple[str, ...] = ()
    program: str = ""


SUGGESTIONS: Final = (
    Suggestion("public", {
        "title": "Brass band in the rain or shine", "venue": {"venue": "Canal Basin", "city": "Larkford"},
        "organizer": {"organizer": "Larkford Brass"}, "cost": "Free", "website": "https://brass.example.org/",
        "description": "Marches, film music and a waltz for dancing. We have umbrellas for the trumpets, not for you.",
    }, days=12, sender="Petra", note="We’re 24 players. Is there a socket at the basin?"),
    Suggestion("public", {"organizer": {"organizer": "A neighbour"}}, of=0, is_duplicate=True, sender="Jo"),
    Suggestion("contributor", {"cost": "6", "ticket_url": "https://tickets.example.org/late"}, of=1, login="rosa",
               note="They asked me to add the price."),
    Suggestion("api", {
        "title": "Repair café on wheels", "description": "Bicycles, prams and wheelchairs. Bring the part if you can.",
    }, days=16, login="tom", program="Repair café website"),
    Suggestion("agent", {
        "title": "Jumble sale", "description": "Books, china and one rocking horse.", "cost": "0.50",
    }, days=20, login="tom", program="Posters", guessed=("end_date",),
       source="Poster at the station: JUMBLE SALE Sat 2 pm church hall 50p"),
)  # fmt: skip
