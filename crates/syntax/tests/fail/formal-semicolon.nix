{ a, b; }: a
