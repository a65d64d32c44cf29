; A reduction into shards leaves every owner the complete value of its elements
;
; Proof base
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Element 0)
(declare-fun owner (Element) Int)
(declare-fun sum (Int) Real)
(declare-const e Element)
(declare-const w Int)
(declare-const n Int)
(declare-const N Int)
(define-fun holds ((x Int) (f Element)) Bool (= x (owner f)))
(define-fun share ((x Int)) Real (ite (= x w) 1.0 0.0))
(define-fun claim ((m Int)) Bool (= (sum m) (ite (< w m) 1.0 0.0)))
(assert (and (>= n 0) (<= 0 w) (< w N) (<= 0 (owner e)) (< (owner e) N)))
(assert (= (sum 0) 0.0))
(assert (= (sum (+ n 1)) (+ (sum n) (share n))))
(assert (not (claim 0)))
(check-sat)
