; Summing copies counts everything N times; averaging them changes nothing
;
; Proof wrong_from_two
; The sum of copies is right at N = 1 and nowhere else.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun sum (Int) Real)
(declare-const n Int)
(define-fun claim ((m Int)) Bool (= (sum m) (to_real m)))
(assert (>= n 0))
(assert (= (sum 0) 0.0))
(assert (= (sum (+ n 1)) (+ (sum n) 1.0)))
(declare-const N Int)
(assert (>= N 1))
(assert (claim N))
(assert (distinct (= (sum N) 1.0) (= N 1)))
(check-sat)
