; An operation over one axis leaves the factors of the other axes alone
;
; Proof right_times_right
; Where both kinds are right for all devices and items, so is their product.
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
(declare-const ka Real)
(declare-const kb Real)
(assert (and (= ka 1.0) (= kb 1.0)))
(assert (distinct (* ka kb) 1.0))
(check-sat)
