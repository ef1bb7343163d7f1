{ inherit (a) b "c${d}"; }
