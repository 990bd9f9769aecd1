"""Series in the console: the editor of rules, the question for the scope of an edit, and the pages of series."""
