; A reduction cannot bring back shares that a broadcast has overwritten
;
; Proof mean
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
(assert (>= N 1))
(assert (claim N))
(assert (distinct (/ (sum N) (to_real N)) root))
(check-sat)
