"""Push: other systems learn what changed, by webhooks and by live lists, from one follower of the change log."""
