"""Use cases of push: following the change log, delivering and managing webhooks."""
