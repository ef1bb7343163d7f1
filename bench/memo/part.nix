{ n, name }: rec { half = n / 2; total = half + builtins.stringLength name; }
