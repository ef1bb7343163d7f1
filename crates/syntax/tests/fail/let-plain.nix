f let a = 1; in a
