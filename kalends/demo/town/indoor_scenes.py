"""Draw the demo pictures that show rooms or objects."""

import math

from kalends.demo.town.town_canvas import HEIGHT, WIDTH, Canvas


def draw_music(canvas: Canvas) -> None:
    dark, light, warm, pale = canvas.palette
    canvas.sky(dark, light)
    canvas.glow(80, 50, 62, warm, 0.55)
    for radius in range(41, 8, -4):
        canvas.ring(80, 47, radius, dark, 0.5)
    canvas.circle(80, 47, 12, warm)
    canvas.circle(80, 47, 2, dark)
    for n in range(20):
        height = 6 + 22 * canvas.chance.random()
        canvas.box(4 + n * 8, 88 - height, 4, height + 4, pale if n % 3 else warm, 2)


def draw_theatre(canvas: Canvas) -> None:
    dark, cloth, fold, light = canvas.palette
    canvas.sky(dark, "#1b1420")
    canvas.shade([(80, -20), (122, 80), (38, 80)], light, 0.35)
    canvas.glow(80, 78, 48, light, 0.8)
    canvas.box(0, 80, WIDTH, 10, "#5b3a29")
    canvas.box(74, 62, 12, 2, dark)
    canvas.line([(75, 63), (74, 80)], dark, 1.2)
    canvas.line([(85, 63), (86, 80)], dark, 1.2)
    canvas.line([(75, 63), (75, 46)], dark, 1.2)
    canvas.box(74, 45, 2, 12, dark)
    for side in (0, 1):
        for n in range(6):
            x, width = n * 8.0, 8.5
            bottom = 84 - n * 2.5
            left = WIDTH - x - width if side else x
            canvas.box(left, -2, width, bottom + 2, cloth if n % 2 else fold, 3)
    for n in range(10):
        canvas.circle(8 + n * 16, 2, 10.5, cloth if n % 2 else fold)


def draw_film(canvas: Canvas) -> None:
    dark, screen, seat, light = canvas.palette
    canvas.sky(dark, "#0d0c14")
    canvas.shade([(80, 96), (24, 8), (136, 8)], light, 0.18)
    canvas.box(26, 8, 108, 46, screen, 1)
    canvas.glow(80, 30, 40, light, 0.6)
    x = 50 + 60 * canvas.chance.random()
    canvas.circle(x, 27, 8, light)
    canvas.polygon([(26, 54), (26, 44), (58, 32), (88, 46), (112, 36), (134, 46), (134, 54)], seat)
    for row, y in enumerate((66, 77, 88)):
        for n in range(-1, 12):
            canvas.box(n * 15 + row * 5, y, 12, 16, seat if row == 2 else dark, 4)
            canvas.box(n * 15 + row * 5, y, 12, 5, seat, 4)


def draw_exhibition(canvas: Canvas) -> None:
    wall, first, second, third = canvas.palette
    canvas.sky(wall, "#fbf7f0")
    canvas.box(0, 74, WIDTH, 16, "#c9b79c")
    canvas.box(0, 73, WIDTH, 1.2, "#a8967c")
    for n, (x, width, height) in enumerate(((16, 30, 42), (58, 48, 34), (118, 28, 40))):
        y = 40 - height / 2
        right, bottom = x + width + 3, y + height + 3
        canvas.shade([(x + 2, y + 2), (right, y + 2), (right, bottom), (x + 2, bottom)], "#000000", 0.18)
        canvas.box(x, y, width, height, "#2c2a29")
        canvas.box(x + 1.2, y + 1.2, width - 2.4, height - 2.4, (first, second, third)[n])
        for colour in (third, wall, first)[: 2 + n % 2]:
            radius = 4 + 6 * canvas.chance.random()
            across = x + 4 + radius + (width - 8 - 2 * radius) * canvas.chance.random()
            canvas.circle(across, y + 4 + radius + (height - 8 - 2 * radius) * canvas.chance.random(), radius, colour)
        canvas.line([(x + 3, y + height - 8), (x + width - 3, y + height - 12)], "#2c2a29", 0.6)
    canvas.box(66, 68, 28, 3, "#6d5b4b", 1)
    canvas.line([(70, 70), (70, 80)], "#6d5b4b", 1.4)
    canvas.line([(90, 70), (90, 80)], "#6d5b4b", 1.4)


def draw_books(canvas: Canvas) -> None:
    wall, *covers = canvas.palette
    canvas.sky(wall, "#2b2320")
    for shelf in (44, 88):
        x = 4.0
        while x < WIDTH - 8:
            width, height = 4 + 5 * canvas.chance.random(), 24 + 12 * canvas.chance.random()
            colour = canvas.chance.choice(covers)
            canvas.box(x, shelf - height, width, height, colour, 0.6)
            canvas.box(x, shelf - height * 0.82, width, 1, wall)
            canvas.box(x, shelf - height * 0.25, width, 1.6, "#f3e9d8")
            x += width + 0.5
            if canvas.chance.random() < 0.09:
                canvas.polygon([(x, shelf), (x + 5, shelf), (x + 15, shelf - 28), (x + 10, shelf - 30)], colour)
                x += 15
        canvas.box(0, shelf, WIDTH, 3, "#8a6242")
    canvas.glow(120, 6, 60, "#ffdca0", 0.35)


def draw_courses(canvas: Canvas) -> None:
    wall, clay, glaze, wood = canvas.palette
    canvas.sky(wall, "#fff9ee")
    canvas.box(0, 64, WIDTH, 26, wood)
    canvas.box(0, 64, WIDTH, 1.5, "#8f6a45")
    for x, tall, wide in ((34, 36, 12), (72, 24, 16), (116, 42, 10)):
        base = 72
        outline = [
            (
                x + side * wide * (0.62 + 0.38 * math.sin(math.pi * step / 10) - 0.2 * step / 10),
                base - tall * step / 10,
            )
            for side, steps in ((-1, range(11)), (1, range(10, -1, -1)))
            for step in steps
        ]
        canvas.polygon(outline, clay)
        cut = [point for point in outline if point[1] <= base - tall * 0.55]
        canvas.polygon(cut, glaze)
        canvas.box(x - wide * 0.46, base - tall - 0.8, wide * 0.92, 1.6, "#4a3428", 0.8)
    for n in range(5):
        foot = 134 + n * 4 + 2 * canvas.chance.random()
        canvas.line([(foot, 66), (foot + 5 - n * 2, 40 + n)], wood if n % 2 else "#4a3428", 0.9)
        canvas.circle(foot + 5 - n * 2, 39 + n, 1.6, glaze if n % 2 else clay)
    canvas.box(131, 58, 22, 16, glaze, 2)


def draw_food(canvas: Canvas) -> None:
    cloth, stripe, first, second = canvas.palette
    canvas.sky(cloth, cloth)
    for n in range(0, 160, 16):
        canvas.shade([(n, 0), (n + 8, 0), (n + 8, HEIGHT), (n, HEIGHT)], stripe, 0.35)
    for n in range(0, 96, 16):
        canvas.shade([(0, n), (WIDTH, n), (WIDTH, n + 8), (0, n + 8)], stripe, 0.35)
    for x, y, radius, colour in ((46, 40, 30, first), (112, 56, 25, second), (98, 14, 13, first)):
        canvas.glow(x + 1.5, y + 2, radius * 1.5, "#000000", 0.3)
        canvas.circle(x, y, radius, "#fbf8f2")
        canvas.ring(x, y, radius * 0.86, "#e3dccf", 0.5)
        canvas.circle(x, y, radius * 0.7, colour)
        for _ in range(16):
            angle, away = 6.3 * canvas.chance.random(), radius * 0.55 * canvas.chance.random() ** 0.5
            spot = canvas.chance.choice(("#4f7d3a", "#fff3cf", "#c2452d", "#e9a53b"))
            canvas.circle(x + away * math.cos(angle), y + away * math.sin(angle), radius * 0.07, spot)
    canvas.line([(148, 20), (148, 78)], "#9aa1a6", 1.6)
    for tine in (-2.4, 0, 2.4):
        canvas.line([(148 + tine, 14), (148 + tine, 26)], "#9aa1a6", 0.9)
    canvas.line([(145.6, 26), (150.4, 26)], "#9aa1a6", 1.2)


def draw_folk(canvas: Canvas) -> None:
    wall, wood, dark, light = canvas.palette
    canvas.sky(wall, "#1d1714")
    canvas.glow(96, 26, 60, light, 0.55)
    canvas.box(0, 78, WIDTH, 12, "#4a3324")
    for x, y, radius in ((58, 60, 20), (76, 50, 15)):
        canvas.circle(x, y, radius + 1, dark)
        canvas.circle(x, y, radius, wood)
    canvas.circle(68, 54, 6.5, dark)
    canvas.line([(71, 52), (122, 20)], dark, 5)
    canvas.polygon([(119, 18), (132, 9), (137, 15), (124, 25)], dark)
    canvas.line([(50, 70), (60, 62)], dark, 2.4)
    for n in range(4):
        canvas.line([(53 + n * 1.2, 66 + n * 1.2), (128 + n, 13 + n * 1.2)], "#f3e9d8", 0.25)
        canvas.circle(127 + n * 3, 8 + n * 3.4 + canvas.chance.random(), 1.1, light)
    canvas.box(16, 52, 3, 28, dark)
    canvas.box(134, 52, 3, 28, dark)
    for x in (10, 128):
        canvas.box(x, 50, 16, 3, wood, 1)


def draw_organ(canvas: Canvas) -> None:
    stone, case, pipe, glass = canvas.palette
    canvas.sky(stone, "#efe7da")
    canvas.circle(80, 16, 13, case)
    canvas.circle(80, 16, 11, glass)
    for step in range(8):
        angle = step * math.pi / 4
        canvas.line([(80, 16), (80 + 11 * math.cos(angle), 16 + 11 * math.sin(angle))], case, 0.7)
    for left, tallest in ((10, 48), (62, 36), (114, 48)):
        canvas.box(left - 2, 78 - tallest - 6, 40, tallest + 12, case, 2)
        for n in range(7):
            height = tallest - 5 * abs(n - 3) + 2 * canvas.chance.random()
            x = left + 1 + n * 5
            canvas.box(x, 76 - height, 4, height, pipe, 1.8)
            canvas.shade([(x + 2.6, 78 - height), (x + 4, 78 - height), (x + 4, 76), (x + 2.6, 76)], "#000000", 0.25)
            canvas.polygon([(x + 0.8, 71), (x + 3.2, 71), (x + 2, 67)], case)
    canvas.box(0, 82, WIDTH, 8, case)


def draw_yoga(canvas: Canvas) -> None:
    wall, sun, mat, figure = canvas.palette
    canvas.sky(wall, "#fff7ea")
    canvas.circle(80, 44, 31, sun)
    canvas.box(0, 74, WIDTH, 16, "#d8c3a5")
    canvas.box(28, 77, 104, 6, mat, 2)
    canvas.polygon([(46, 78), (62, 66), (98, 66), (114, 78), (96, 81), (64, 81)], figure)
    canvas.polygon([(72, 70), (71, 44), (89, 44), (88, 70)], figure)
    canvas.circle(80, 34, 6.4, figure)
    for side in (-1, 1):
        canvas.line([(80 + side * 8, 47), (80 + side * 17, 34), (80 + side * 2, 16)], figure, 4)
    for x in (14, 146):
        canvas.box(x - 4, 68, 8, 8, mat, 1)
        for n in range(-2, 3):
            tip = x + n * (4 + canvas.chance.random())
            canvas.line([(x, 68), (x + n * 2.4, 56), (tip, 50 + abs(n) * 3)], "#5f8f63", 1.3)


def draw_timepiece(canvas: Canvas) -> None:
    wall, brass, iron, face = canvas.palette
    canvas.sky(wall, "#2a2320")
    canvas.glow(60, 42, 60, brass, 0.35)
    for x, y, radius, teeth in ((126, 28, 17, 16), (118, 68, 20, 20), (148, 52, 11, 12)):
        turn = canvas.chance.random()
        for tooth in range(teeth):
            angle = turn + 2 * math.pi * tooth / teeth
            canvas.circle(x + radius * math.cos(angle), y + radius * math.sin(angle), 1.9, iron)
        canvas.circle(x, y, radius, iron)
        canvas.circle(x, y, radius * 0.72, brass)
        canvas.circle(x, y, radius * 0.2, iron)
    canvas.circle(58, 45, 38, iron)
    canvas.circle(58, 45, 35, face)
    for hour in range(12):
        angle = hour * math.pi / 6
        inner, outer = (27.0 if hour % 3 else 24.0), 32.0
        along, across = math.cos(angle), math.sin(angle)
        canvas.line([(58 + inner * along, 45 + inner * across), (58 + outer * along, 45 + outer * across)], iron, 1.6)
    for length, width, angle in ((17, 2.4, 6.3 * canvas.chance.random()), (27, 1.6, 6.3 * canvas.chance.random())):
        canvas.line([(58, 45), (58 + length * math.cos(angle), 45 + length * math.sin(angle))], iron, width)
    canvas.circle(58, 45, 2.6, brass)


def draw_boats(canvas: Canvas) -> None:
    table, water, *papers = canvas.palette
    canvas.sky(table, "#fff8ec")
    canvas.box(8, 40, 144, 46, "#ffffff", 8)
    canvas.box(11, 43, 138, 40, water, 6)
    for y in range(50, 82, 8):
        points = [(14 + x, y + 0.9 * math.sin(x / 5 + y)) for x in range(0, 134, 2)]
        canvas.line(points, "#ffffff", 0.35)
    for n, colour in enumerate(papers):
        x, y = 34 + n * 44 + 6 * canvas.chance.random(), 64 + 8 * (n % 2)
        canvas.polygon([(x - 15, y - 9), (x + 15, y - 9), (x + 9, y), (x - 9, y)], colour)
        canvas.polygon([(x, y - 28), (x + 9, y - 9), (x - 9, y - 9)], colour)
        canvas.shade([(x, y - 28), (x + 9, y - 9), (x, y - 9)], "#000000", 0.14)
        canvas.shade([(x, y - 9), (x + 15, y - 9), (x + 9, y), (x, y)], "#000000", 0.1)
    for n, colour in enumerate(papers):
        x = 24 + n * 40
        canvas.polygon([(x, 12), (x + 22, 8 + n * 2), (x + 26, 26), (x + 4, 30)], colour)
        canvas.line([(x, 12), (x + 26, 26)], "#ffffff", 0.4)
