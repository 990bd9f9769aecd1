"""Larkford, the fictional town for `kalends seed --town`: places, program, pictures, and the loader."""
