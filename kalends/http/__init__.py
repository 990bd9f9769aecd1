"""HTTP plumbing shared by the API and the website: requests, responses, authentication, caching, telemetry."""
