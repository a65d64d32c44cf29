; Each condition is necessary: for some optimizer, breaking it makes parameters wrong
;
; Proof start
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const theta Real)
(declare-const omega Real)
(declare-const fed Real)
(declare-const theta2 Real)
(declare-const s_theta Real)
(declare-const s_omega Real)
(declare-const gradient Real)
(declare-const s_theta2 Real)
(define-fun U ((t Real) (o Real) (g Real)) Real (- t o g))
(assert (= s_theta2 (U s_theta s_omega gradient)))
(define-fun updated () Bool (= theta2 (U theta omega fed)))
(assert (and updated (= omega s_omega) (= fed gradient)))
(assert (= theta2 s_theta2))
(assert (distinct theta s_theta))
(check-sat)
