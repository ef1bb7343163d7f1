{ a.b.c = 1; a.b.c.d = 2; }
