; A value is right for every gradient exactly when every coefficient is right
;
; Proof if_step
; If they agree before w and the coefficients of w agree, they agree after w. By induction they agree on all items.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int) Real)
(declare-fun K (Int) Real)
(declare-fun c (Int) Real)
(declare-fun held (Int) Real)
(declare-fun single (Int) Real)
(declare-const w Int)
(assert (>= w 0))
(assert (= (held 0) 0.0))
(assert (= (single 0) 0.0))
(assert (= (held (+ w 1)) (+ (held w) (* (k w) (c w)))))
(assert (= (single (+ w 1)) (+ (single w) (* (K w) (c w)))))
(assert (= (held w) (single w)))
(assert (= (k w) (K w)))
(assert (distinct (held (+ w 1)) (single (+ w 1))))
(check-sat)
