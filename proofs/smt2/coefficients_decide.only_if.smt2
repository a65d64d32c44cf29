; A value is right for every gradient exactly when every coefficient is right
;
; Proof only_if
; So if the totals over W > v items agree for this c, the coefficients of v agree.
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
(declare-const v Int)
(declare-const W Int)
(assert (and (<= 0 v) (< v W)))
(assert (= (held W) (ite (> W v) (k v) 0.0)))
(assert (= (single W) (ite (> W v) (K v) 0.0)))
(assert (= (held W) (single W)))
(assert (distinct (k v) (K v)))
(check-sat)
