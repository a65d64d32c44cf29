; A reduction cannot bring back shares that a broadcast has overwritten
;
; Proof never_right
; For N >= 2 there is an item other than r (0 or 1), and its coefficient is 0 whatever the scale.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun sum (Int) Real)
(declare-const r Int)
(declare-const w Int)
(declare-const n Int)
(define-fun root () Real (ite (= w r) 1.0 0.0))
(define-fun claim ((m Int)) Bool (= (sum m) (* (to_real m) root)))
(assert (and (>= n 0) (>= w 0) (>= r 0)))
(assert (= (sum 0) 0.0))
(assert (= (sum (+ n 1)) (+ (sum n) root)))
(declare-const N Int)
(declare-const scale Real)
(assert (and (>= N 2) (< r N)))
(assert (= w (ite (= r 0) 1 0)))
(assert (not (and (< w N) (distinct (* scale (* (to_real N) root)) 1.0))))
(check-sat)
