; An operation over one axis leaves the factors of the other axes alone
;
; Proof step
; With b a factor this is the first line; with b the sum over x_b it is the second, as the inner sum is a(x_a) * b.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun a (Int) Real)
(declare-fun sum (Int) Real)
(declare-fun rows (Int) Real)
(declare-const b Real)
(declare-const n Int)
(assert (>= n 0))
(assert (and (= (sum 0) 0.0) (= (rows 0) 0.0)))
(assert (= (sum (+ n 1)) (+ (sum n) (a n))))
(assert (= (rows (+ n 1)) (+ (rows n) (* (a n) b))))
(assert (= (rows n) (* (sum n) b)))
(assert (distinct (rows (+ n 1)) (* (sum (+ n 1)) b)))
(check-sat)
