"""The WordPress routes that existing clients call."""
