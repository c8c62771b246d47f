RETURNS price AS blob
META team "sales"
DESCRIPTION "Tell the price"
RETURN 5
