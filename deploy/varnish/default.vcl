vcl 4.1;

# Kalends behind Varnish 7.1 with xkey (Debian: varnish, varnish-modules). See README.md.
#
# The server decides which responses are public and for how long (s-maxage), and sends their cache tags
# (Surrogate-Key). After every write, the worker purges exactly the responses that the write invalidates.

import std;
import xkey;

backend default {
    .host = "127.0.0.1";
    .port = "8000";
    .connect_timeout = 1s;
    .first_byte_timeout = 30s;
    .probe = {
        .url = "/readyz";
        .interval = 1s;
        .timeout = 1s;
        .window = 3;
        .threshold = 2;
    }
}

# `kalends stream`, which serves live lists (docs/live-lists.md). Without a probe, Varnish starts without it, too.
backend streams {
    .host = "127.0.0.1";
    .port = "8001";
    .connect_timeout = 1s;
}

# The clients that may purge: the worker, on this machine. A proxy in front of Varnish on the same machine must not
# forward PURGE.
acl workers {
    "localhost";
    "127.0.0.1";
    "::1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ workers) {
            return (synth(405, "Not allowed"));
        }
        if (!req.http.xkey) {
            return (synth(400, "No xkey"));
        }
        set req.http.n-gone = xkey.purge(req.http.xkey);
        return (synth(200, "Purged " + req.http.n-gone));
    }

    # A request to follow a list. Varnish connects the client with the process, and does not read what is sent.
    if (req.method == "GET" && req.url ~ "(?i)^/(api|wp-json)/" && req.http.Accept ~ "(?i)text/event-stream") {
        set req.backend_hint = streams;
        return (pipe);
    }

    # While the server is healthy, a stale response is used only for stale-while-revalidate (60 s);
    # otherwise, as long as it is kept.
    if (std.healthy(req.backend_hint)) {
        set req.grace = 60s;
    }

    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    # Responses that depend on the user or on a password are never cached. A strict request must reach the server
    # with all of its parameters.
    if (req.http.Authorization || req.url ~ "(?i)[?&][^=&]*password" || req.url ~ "[?&]strict(=|&|$)") {
        return (pass);
    }
    # This cookie identifies the session of a user in the console and the API; nothing else reads cookies.
    if (req.http.Cookie ~ "(^|;\s*)__Host-kalends=") {
        return (pass);
    }
    # A client that sends a revision must not receive an older response; only the server knows the revisions.
    if (req.http.X-Kalends-Revision) {
        return (pass);
    }
    unset req.http.Cookie;
    # Unknown parameters are removed, so that `?utm_source=…` shares a cache entry with the URL without it. Escaped names
    # are left to the server, which decodes them.
    set req.url = regsuball(req.url, "([?&])(?!(?:_embed|_envelope|_fields|action|after|all_day|author|before|categories|city|context|cursor|end_date|ends_after|ends_before|event|eventDate|eventDisplay|event_status|exclude|featured|feed|find_categories|find_organizer|find_tags|find_venue|format|free|from|geoloc|geoloc_lat|geoloc_lng|geoloc_radius|has_events|hide_empty|hide_subsequent_recurrences|ical|include|kind|lang|limit|mime_type|namespace|near|only_with_upcoming|order|orderby|organizer|origin|outlook-ical|overlaps_from|overlaps_to|p|page|parent|password|past|per_page|post|post_parent|q|record|repeats|rest_route|search|series|since|slug|source|start_date|start_day|start_time|starts_after|starts_before|state|status|strict_dates|tabs|tags|theme|ticketed|title|to|tribe-bar-date|tribe-bar-search|tribe_event_display|tribe_events|tribe_events_cat|tribe_organizer|tribe_paged|tribe_venue|venue|view|without_alt_text)(?:[=\[&%]|$))[A-Za-z0-9_.~-]+(?:=[^&]*)?(?=&|$)", "\1");
    set req.url = regsub(regsuball(req.url, "([?&])&+", "\1"), "[?&]$", "");
    # The order of parameters does not matter, except among those of the same name.
    if (req.url !~ "[?&]([^=&]*)=[^&]*&(?:.*&)?\1=") {
        set req.url = std.querysort(req.url);
    }
    return (hash);
}

sub vcl_pipe {
    # Another request on this connection would not be read either.
    set bereq.http.Connection = "close";
}

sub vcl_hash {
    hash_data(req.url);
    hash_data(std.tolower(req.http.Host));
    return (lookup);
}

sub vcl_backend_response {
    # A failed background fetch does not replace a cached response.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    # A response without cache tags could not be purged, so it is not cached.
    if (bereq.uncacheable || beresp.ttl <= 0s || !beresp.http.Surrogate-Key
        || beresp.http.Cache-Control ~ "(?i)private|no-store" || beresp.http.Set-Cookie) {
        set beresp.uncacheable = true;
        set beresp.ttl = 10s;
        set beresp.grace = 0s;
        unset beresp.http.Surrogate-Key;
        return (deliver);
    }
    set beresp.http.xkey = beresp.http.Surrogate-Key;
    unset beresp.http.Surrogate-Key;
    unset beresp.http.X-Request-ID;
    set beresp.grace = 24h;
    # A response that becomes wrong at midnight must not be used after it.
    if (beresp.http.Cache-Control ~ "stale-while-revalidate=" && beresp.http.Cache-Control !~ "stale-while-revalidate=60") {
        set beresp.grace = std.duration(regsub(beresp.http.Cache-Control, "^.*stale-while-revalidate=(\d+).*$", "\1s"), 0s);
    }
    return (deliver);
}

sub vcl_deliver {
    unset resp.http.xkey;
    unset resp.http.Via;
    unset resp.http.X-Varnish;
    if (obj.hits > 0) {
        set resp.http.X-Cache = "hit";
    } else {
        set resp.http.X-Cache = "miss";
    }
    return (deliver);
}
