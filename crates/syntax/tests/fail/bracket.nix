[ a b )
