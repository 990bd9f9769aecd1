-- Statement trigger for the copies in the link tables, and counters of events per link and day.
SELECT 1;
