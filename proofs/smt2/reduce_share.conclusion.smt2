; Summing shares gives every device the whole; averaging them, a whole divided by N
;
; Proof conclusion
; With N devices, w among them: the sum is 1, and the mean 1/N.
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
(declare-const N Int)
(assert (< w N))
(assert (claim N))
(assert (not (and (= (sum N) 1.0) (= (* (to_real N) (/ (sum N) (to_real N))) 1.0))))
(check-sat)
