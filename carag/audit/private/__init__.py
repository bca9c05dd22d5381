"""Keep personal values sealed, apart from the records that commit to them."""
