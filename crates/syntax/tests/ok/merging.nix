{
  a.b = 1;
  a.c = 2;
  a = { d = 3; "e f" = 4; };
  r = rec { x = 1; };
  r.y = 2;
  s.x = 1;
  s = rec { y = 2; };
  i = { inherit (p) q; };
  i = { inherit (u) v w; inherit z; };
  d.${n} = 1;
  d = { ${m}.o = 2; };
  ${k} = 1;
  "${k}" = 2;
  ${"static"} = 3;
  "if" = 4;
  "" = 5;
  "1a" = 6;
  f.g = x: y: z;
}
