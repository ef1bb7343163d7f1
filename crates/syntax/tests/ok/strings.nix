[
  ""
  "a\n\r\t\\\"\${b}$c$"
  "$${x}$\${x}"
  "a${b}c${"d"}"
  "${x}"
  ''''
  ''
    one
      two ${x}
    ''${three} ''' ''\n
  ''
    ''\t
    $$ $' '
  ''
  ''
      a

    b
   ''
  ''$''
  ''${"x"}''
  ''  a
     b''
  http://example.org/a?b=c
  x:y
]
