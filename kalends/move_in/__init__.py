"""Migration of sites from The Events Calendar."""
