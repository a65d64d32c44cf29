; Summing copies counts everything N times; averaging them changes nothing
;
; Proof step
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun sum (Int) Real)
(declare-const n Int)
(define-fun claim ((m Int)) Bool (= (sum m) (to_real m)))
(assert (>= n 0))
(assert (= (sum 0) 0.0))
(assert (= (sum (+ n 1)) (+ (sum n) 1.0)))
(assert (claim n))
(assert (not (claim (+ n 1))))
(check-sat)
