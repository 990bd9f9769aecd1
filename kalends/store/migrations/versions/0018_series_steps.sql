-- The predecessor of each occurrence, to find the first of a series in a list.
SELECT 1;
