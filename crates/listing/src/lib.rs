//! Filter, sort, pattern and paging of lists
