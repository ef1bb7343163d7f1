if a then b
