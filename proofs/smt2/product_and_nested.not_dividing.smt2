; Cutting by a product of axes is cutting twice exactly when the sizes divide; else it may differ
;
; Witness not_dividing
; s = 5, A = B = 2. Nested: chunks of 3, then of 2 and 1, so element 3 belongs to (1, 0), which is number 2. By the product:
; chunks of 2, so it belongs to number 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const e Int)
(declare-const k Int)
(declare-const B Int)
(declare-const xa Int)
(declare-const xb Int)
(declare-const product Int)
(assert (and (= e 3) (= xa 1) (= xb 0) (= B 2) (= product 1)))
(assert (and (<= (* 3 xa) e) (< e (* 3 (+ xa 1)))))
(assert (and (<= (* 1 xb) (- e 3)) (< (- e 3) (* 1 (+ xb 1)))))
(assert (and (<= (* 2 product) e) (< e (* 2 (+ product 1)))))
(assert (distinct product (+ (* xa B) xb)))
(check-sat)
