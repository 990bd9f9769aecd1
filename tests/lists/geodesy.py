"""Distances on the WGS 84 spheroid by Vincenty's inverse formula; right to less than a millimetre."""

from math import atan, atan2, cos, radians, sin, sqrt, tan

type Point = tuple[float, float]  # latitude, longitude

EQUATOR = 6378137.0
FLATTENING = 1 / 298.257223563
POLE = EQUATOR * (1 - FLATTENING)


def distance_in_metres(first: Point, second: Point) -> float:
    """Not for places that lie almost opposite each other: there the formula does not settle."""
    if first == second:
        return 0.0
    u1, u2 = (atan((1 - FLATTENING) * tan(radians(latitude))) for latitude in (first[0], second[0]))
    difference = radians(second[1] - first[1])
    longitude = difference
    for _ in range(200):
        sin_sigma = sqrt(
            (cos(u2) * sin(longitude)) ** 2 + (cos(u1) * sin(u2) - sin(u1) * cos(u2) * cos(longitude)) ** 2
        )
        cos_sigma = sin(u1) * sin(u2) + cos(u1) * cos(u2) * cos(longitude)
        sigma = atan2(sin_sigma, cos_sigma)
        sin_alpha = cos(u1) * cos(u2) * sin(longitude) / sin_sigma
        cos2_alpha = 1 - sin_alpha**2
        middle = cos_sigma - 2 * sin(u1) * sin(u2) / cos2_alpha if cos2_alpha else 0.0
        c = FLATTENING / 16 * cos2_alpha * (4 + FLATTENING * (4 - 3 * cos2_alpha))
        before = longitude
        around = sigma + c * sin_sigma * (middle + c * cos_sigma * (2 * middle**2 - 1))
        longitude = difference + (1 - c) * FLATTENING * sin_alpha * around
        if abs(longitude - before) < 1e-13:
            return _arc_length(sigma, sin_sigma, cos_sigma, middle, cos2_alpha)
    raise ArithmeticError(f"{first} and {second} lie opposite each other")


def _arc_length(sigma: float, sin_sigma: float, cos_sigma: float, middle: float, cos2_alpha: float) -> float:
    u = cos2_alpha * (EQUATOR**2 - POLE**2) / POLE**2
    a = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    b = u / 1024 * (256 + u * (-128 + u * (74 - 47 * u)))
    inner = cos_sigma * (2 * middle**2 - 1) - b / 6 * middle * (4 * sin_sigma**2 - 3) * (4 * middle**2 - 3)
    return POLE * a * (sigma - b * sin_sigma * (middle + b / 4 * inner))
