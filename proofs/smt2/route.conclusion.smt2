; Routing to owners sums the shares; what is not split arrives N times
;
; Proof conclusion
; With w < N the owner has every item once from shares. From copies it has N of each, right only at N = 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun shares (Int) Real)
(declare-fun copies (Int) Real)
(declare-fun roots (Int) Real)
(declare-const w Int)
(declare-const r Int)
(declare-const n Int)
(define-fun claim ((m Int)) Bool (and
  (= (shares m) (ite (< w m) 1.0 0.0))
  (= (copies m) (to_real m))
  (= (roots m) (* (to_real m) (ite (= w r) 1.0 0.0)))))
(assert (and (>= w 0) (>= n 0)))
(assert (and (= (shares 0) 0.0) (= (copies 0) 0.0) (= (roots 0) 0.0)))
(assert (= (shares (+ n 1)) (+ (shares n) (ite (= n w) 1.0 0.0))))
(assert (= (copies (+ n 1)) (+ (copies n) 1.0)))
(assert (= (roots (+ n 1)) (+ (roots n) (ite (= w r) 1.0 0.0))))
(declare-const N Int)
(assert (< w N))
(assert (claim N))
(assert (not (and (= (shares N) 1.0) (= (= (copies N) 1.0) (= N 1)))))
(check-sat)
