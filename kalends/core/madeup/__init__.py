"""Made-up but lifelike records for `kalends seed`: places, words, texts, dates. No SQL, no clock."""
