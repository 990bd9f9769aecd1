-- An index of the events that cost nothing. The filter `free` has the same list of costs.

CREATE INDEX events_free ON events (site_id, start_utc)
    WHERE status = 'publish' AND NOT hide_from_listings
        AND cost IN ('0', '0.00', '0,00', 'Free', 'free', 'Frei', 'frei', 'Eintritt frei', 'Kostenlos', 'kostenlos',
            'Gratis', 'gratis', 'Gratuit', 'gratuit', 'Gratuito', 'gratuito', 'Entrée libre', 'Entrada libre',
            'Ingresso libero', 'Entrada franca', '無料');
