; Summing shares gives every device the whole; averaging them, a whole divided by N
;
; Proof step
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun sum (Int) Real)
(declare-const w Int)
(declare-const n Int)
(define-fun share ((x Int)) Real (ite (= x w) 1.0 0.0))
(define-fun claim ((m Int)) Bool (= (sum m) (ite (< w m) 1.0 0.0)))
(assert (and (>= w 0) (>= n 0)))
(assert (= (sum 0) 0.0))
(assert (= (sum (+ n 1)) (+ (sum n) (share n))))
(assert (claim n))
(assert (not (claim (+ n 1))))
(check-sat)
