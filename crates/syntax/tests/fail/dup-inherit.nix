{ "if" = 1; inherit (a) "if"; }
