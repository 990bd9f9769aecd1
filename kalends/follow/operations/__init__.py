"""What followers and publishers do, and what a digest contains."""
