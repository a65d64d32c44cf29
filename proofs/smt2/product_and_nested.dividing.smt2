; Cutting by a product of axes is cutting twice exactly when the sizes divide; else it may differ
;
; Proof dividing
; s = A*B*k: chunks of B*k outside and of k inside. The pair (xa, xb) that owns e by nested cuts has the product index that
; owns e by one cut in chunks of k. By aligned_shards that index is the only one.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const e Int)
(declare-const k Int)
(declare-const B Int)
(declare-const xa Int)
(declare-const xb Int)
(assert (and (>= k 1) (>= B 1) (<= 0 xb) (< xb B)))
(assert (and (<= (* xa B k) e) (< e (* (+ xa 1) B k))))
(assert (and (<= (* xb k) (- e (* xa B k))) (< (- e (* xa B k)) (* (+ xb 1) k))))
(assert (not (and (<= (* (+ (* xa B) xb) k) e) (< e (* (+ (* xa B) xb 1) k)))))
(check-sat)
