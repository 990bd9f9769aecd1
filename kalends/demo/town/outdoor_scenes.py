"""Draw the demo pictures that show outdoor scenes."""

import math

from kalends.demo.town.town_canvas import HEIGHT, WIDTH, Canvas


def draw_families(canvas: Canvas) -> None:
    sky, hill, far, *kites = canvas.palette
    canvas.sky(sky, "#fef6e4")
    canvas.circle(132, 18, 8, "#ffd97a")
    for left, middle in ((30, 20), (92, 12)):
        for offset, radius in ((0, 5), (6, 7), (13, 5), (19, 3.5)):
            canvas.circle(left + offset, middle, radius, "#ffffff")
    _draw_hills(canvas, 68, 8, colour=far, shift=0.5)
    _draw_hills(canvas, 78, 6, colour=hill, shift=2.1)
    for n, colour in enumerate(kites):
        x, y = 34 + n * 34 + 10 * canvas.chance.random(), 26 + 18 * canvas.chance.random()
        canvas.line([(x, y), (x - 8, y + 22), (x - 22, 84)], "#6b6b6b", 0.35)
        canvas.polygon([(x, y - 11), (x + 8, y), (x, y + 12), (x - 8, y)], colour)
        canvas.polygon([(x, y - 11), (x + 8, y), (x, y + 12)], "#ffffff")
        canvas.shade([(x, y - 11), (x + 8, y), (x, y + 12)], colour, 0.75)


def draw_market(canvas: Canvas) -> None:
    sky, first, second, third = canvas.palette
    canvas.sky(sky, "#fdf3e1")
    for n, x in enumerate(range(0, 160, 20)):
        height = 18 + 12 * canvas.chance.random()
        canvas.box(x, 44 - height, 20, height + 20, "#d9c4a8" if n % 2 else "#cbb294")
        canvas.polygon([(x, 44 - height), (x + 10, 36 - height), (x + 20, 44 - height)], "#a5603f")
        for window in (5, 12):
            canvas.box(x + window, 49 - height, 3, 5, "#6b7c85")
    canvas.box(0, 62, WIDTH, 28, "#b9aa96")
    for n, colour in enumerate((first, second, third)):
        x = 6 + n * 51
        canvas.line([(x + 2, 40), (x + 2, 84)], "#5b4636", 1)
        canvas.line([(x + 44, 40), (x + 44, 84)], "#5b4636", 1)
        for stripe in range(6):
            shade = colour if stripe % 2 == 0 else "#fffaf0"
            left = x - 1 + stripe * 8
            canvas.polygon([(left + 1, 36), (left + 7, 36), (left + 8, 48), (left, 48)], shade)
            canvas.circle(left + 4, 48, 4, shade)
        canvas.box(x, 66, 46, 16, "#8a6242", 1)
        for fruit in range(8):
            canvas.circle(x + 5 + fruit * 5.2, 65 - canvas.chance.random(), 3, (first, second, third)[fruit % 3])


def draw_walks(canvas: Canvas) -> None:
    sky, far, middle, near = canvas.palette
    canvas.sky(sky, "#fdf1dc", 70)
    canvas.glow(112, 32, 34, "#fff4cf", 0.9)
    canvas.circle(112, 32, 7, "#fffbe9")
    _draw_hills(canvas, 48, 12, colour=far, shift=0.3)
    _draw_hills(canvas, 60, 9, colour=middle, shift=1.9)
    canvas.polygon([(70, 58), (74, 58), (86, 68), (62, 78), (76, 92), (30, 92), (40, 78), (76, 67)], "#cfe3e6")
    _draw_hills(canvas, 82, 5, colour=near, shift=4.2, gap=(26, 84))
    for x in (10, 18, 118, 130, 141, 152):
        height = 12 + 8 * canvas.chance.random()
        canvas.line([(x, 84), (x, 84 - height)], "#4b3b2f", 1)
        for layer in range(3):
            y = 81 - height * 0.33 * layer
            canvas.polygon([(x - 5 + layer, y), (x + 5 - layer, y), (x, y - 9)], near if layer % 2 else "#2f4a3c")


def draw_sport(canvas: Canvas) -> None:
    grass, mown, line, ball = canvas.palette
    canvas.sky(grass, grass)
    for n in range(0, 160, 32):
        canvas.box(n, 0, 16, HEIGHT, mown)
    canvas.ring(80, 45, 22, line, 0.8)
    canvas.line([(80, 0), (80, 90)], line, 0.8)
    canvas.circle(80, 45, 1.4, line)
    for left in (-1, 134):
        canvas.line([(left, 20), (left + 27, 20), (left + 27, 70), (left, 70), (left, 20)], line, 0.8)
    x, y = 46 + 68 * canvas.chance.random(), 24 + 40 * canvas.chance.random()
    canvas.glow(x + 2, y + 3, 11, "#000000", 0.5)
    canvas.circle(x, y, 7, "#fdfdfb")
    for turn in range(5):
        angle = turn * 2 * math.pi / 5 + x
        canvas.circle(x + 4.6 * math.cos(angle), y + 4.6 * math.sin(angle), 1.5, ball)
    canvas.circle(x, y, 1.9, ball)


def draw_festival(canvas: Canvas) -> None:
    sky, dusk, *flags = canvas.palette
    canvas.sky(sky, dusk)
    for _ in range(40):
        canvas.circle(WIDTH * canvas.chance.random(), 46 * canvas.chance.random(), 0.3, "#fff6dc")
    x = 0.0
    while x < WIDTH:
        width, height = 12 + 10 * canvas.chance.random(), 18 + 18 * canvas.chance.random()
        canvas.box(x, 90 - height, width, height, "#241b33")
        canvas.polygon([(x, 90 - height), (x + width / 2, 82 - height), (x + width, 90 - height)], "#241b33")
        for window in range(2):
            if canvas.chance.random() < 0.75:
                canvas.box(x + 2.5 + window * (width / 2 - 1), 96 - height, 2.4, 3.4, "#ffd88a", 0.4)
        x += width
    for cord, (begin, depth) in enumerate(((10, 22), (28, 20), (20, 30))):
        points = [(s * 2.0, begin + depth * math.sin(math.pi * s / 80)) for s in range(81)]
        canvas.line(points, "#f7ead0", 0.35)
        for n in range(2 + cord, 80, 5):
            at_x, at_y = points[n]
            if cord == 2:
                canvas.glow(at_x, at_y + 1.5, 5, "#ffdf90", 0.9)
                canvas.circle(at_x, at_y + 1.5, 1.2, "#fff4cf")
            else:
                canvas.polygon([(at_x - 2.6, at_y), (at_x + 2.6, at_y), (at_x, at_y + 6)], flags[n % len(flags)])


def draw_civic(canvas: Canvas) -> None:
    sky, stone, roof, door = canvas.palette
    canvas.sky(sky, "#fdf6ea")
    canvas.box(0, 78, WIDTH, 12, "#b9aa96")
    canvas.box(34, 38, 92, 42, stone)
    canvas.polygon([(30, 38), (80, 20), (130, 38)], roof)
    canvas.box(71, 10, 18, 16, stone)
    canvas.polygon([(69, 11), (80, 1), (91, 11)], roof)
    canvas.circle(80, 18, 5.6, "#fffaf0")
    canvas.ring(80, 18, 5.8, door, 0.6)
    hour = 6.28 * canvas.chance.random()
    canvas.line([(80, 18), (80 + 2.6 * math.cos(hour), 18 + 2.6 * math.sin(hour))], door, 0.8)
    canvas.line([(80, 18), (80 + 4.2 * math.sin(hour), 18 - 4.2 * math.cos(hour))], door, 0.6)
    for n in range(7):
        x = 38 + n * 13
        canvas.box(x, 42, 5, 38, "#fffaf0", 0.8)
        canvas.box(x - 0.8, 41, 6.6, 2, "#e7dcc8")
        canvas.box(x - 0.8, 78, 6.6, 2, "#e7dcc8")
    canvas.box(73, 60, 14, 20, door, 2)
    for step in range(3):
        canvas.box(62 - step * 4, 80 + step * 2.4, 36 + step * 8, 2.6, "#d8cbb6" if step % 2 else "#e7dcc8")
    canvas.line([(20, 30), (20, 80)], "#6b6b6b", 0.8)
    canvas.polygon([(20, 30), (34, 33), (20, 38)], door)


def draw_running(canvas: Canvas) -> None:
    sky, bank, path, *shirts = canvas.palette
    canvas.sky(sky, "#fff3df", 60)
    canvas.glow(30, 22, 34, "#fff1c4", 0.9)
    _draw_hills(canvas, 46, 7, colour=bank, shift=1.1)
    canvas.box(0, 50, WIDTH, 16, "#9cc7d3")
    for n in range(9):
        x = 4 + n * 18 + 6 * canvas.chance.random()
        canvas.line([(x, 56 + n % 3 * 3), (x + 8, 56 + n % 3 * 3)], "#ffffff", 0.4)
    canvas.box(0, 64, WIDTH, 26, bank)
    canvas.polygon([(0, 72), (WIDTH, 68), (WIDTH, 84), (0, 88)], path)
    for n, colour in enumerate(shirts):
        x, y = 26 + n * 42 + 6 * canvas.chance.random(), 78 - n * 1.5
        canvas.line([(x - 11, y - 3), (x - 4, y - 10), (x, y - 16)], "#3a3430", 2.6)
        canvas.line([(x + 6, y), (x + 5, y - 9), (x, y - 16)], "#3a3430", 2.6)
        canvas.line([(x, y - 16), (x + 4, y - 30)], colour, 6)
        canvas.line([(x + 4, y - 30), (x + 9, y - 23), (x + 14, y - 27)], colour, 2)
        canvas.line([(x + 4, y - 30), (x - 4, y - 26), (x - 5, y - 20)], colour, 2)
        canvas.circle(x + 7, y - 36, 3.6, "#c98f6b" if n % 2 else "#7d5540")


def draw_house(canvas: Canvas) -> None:
    """Draw a building with random width, windows and gable, so each picture shows a different one."""
    sky, wall, roof, door = canvas.palette
    chance = canvas.chance.random
    canvas.sky(sky, "#fdf6ea")
    canvas.circle(20 + 120 * chance(), 14, 6, "#fffbe9")
    for x in (-6.0, 24.0, 104.0, 134.0):
        height = 26 + 14 * chance()
        canvas.box(x, 78 - height, 30, height, "#d9c9b3" if x % 4 else "#cdbba3")
        canvas.polygon([(x, 78 - height), (x + 15, 70 - height), (x + 30, 78 - height)], "#a98f78")
    columns, storeys = 3 + int(3 * chance()), 2 + int(2 * chance())
    width, height = 18.0 * columns, 20.0 * storeys
    left, top = 80 - width / 2, 80 - height
    canvas.box(left, top, width, height, wall)
    if chance() < 0.6:
        canvas.polygon([(left - 4, top), (80, top - 16), (left + width + 4, top)], roof)
    else:
        canvas.box(left - 3, top - 5, width + 6, 6, roof)
        canvas.polygon([(68, top - 4), (80, top - 15), (92, top - 4)], roof)
    for storey in range(storeys):
        for column in range(columns):
            x, y = left + 4.5 + column * 18, top + 5 + storey * 20
            if storey == storeys - 1 and abs(x + 4.5 - 80) < 12:
                continue  # the door
            canvas.box(x - 0.8, y - 0.8, 10.6, 13.6, "#fffaf0", 1)
            canvas.box(x, y, 9, 12, "#ffd98a" if chance() < 0.3 else "#5d7180", 0.6)
            canvas.line([(x + 4.5, y), (x + 4.5, y + 12)], "#fffaf0", 0.6)
    canvas.box(74, 62, 12, 18, "#fffaf0", 1)
    canvas.box(75.2, 63.4, 9.6, 16.6, door, 1)
    canvas.box(0, 80, WIDTH, 10, "#b9aa96")
    for x in (left - 9, left + width + 9):
        canvas.line([(x, 82), (x, 68)], "#5b4636", 1)
        canvas.circle(x, 62, 6 + 2 * chance(), "#6f9a68")


def _draw_hills(
    canvas: Canvas, level: float, height: float, *, colour: str, shift: float, gap: tuple[int, int] | None = None
) -> None:
    """Draw a range of hills down to the bottom edge; `gap` is a valley between them."""
    points = [
        (float(x), level - height * (0.6 * math.sin(x / 27 + shift) + 0.4 * math.sin(x / 11 + 2 * shift)))
        for x in range(0, WIDTH + 4, 4)
        if gap is None or not gap[0] < x < gap[1]
    ]
    if gap is None:
        canvas.polygon([(0, HEIGHT), *points, (WIDTH, HEIGHT)], colour)
        return
    left = [point for point in points if point[0] <= gap[0]]
    right = [point for point in points if point[0] >= gap[1]]
    canvas.polygon([(0, HEIGHT), *left, (gap[0] + 6, HEIGHT)], colour)
    canvas.polygon([(gap[1] - 6, HEIGHT), *right, (WIDTH, HEIGHT)], colour)
