"""Larkford, the made-up town of `kalends seed --town`: places, programme, pictures, and the loader."""
