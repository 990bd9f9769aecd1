"""Demo data for `kalends seed`: words, places, texts, dates, and the loader."""
