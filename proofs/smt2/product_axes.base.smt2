; An operation over one axis leaves the factors of the other axes alone
;
; Proof base
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
(assert (distinct (rows 0) (* (sum 0) b)))
(check-sat)
