package harness

import "math"

// Mix is the finaliser of splitmix64, a bijection of 64 bits. Everything random
// in a load is Mix of a counter, so that row i is the same in every run and can
// be made without the rows before it.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps 64 random bits to [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// zipfTheta is YCSB's exponent.
const zipfTheta = 0.99

// zipfZeta is Riemann's zeta function at zipfTheta, the constant term of the
// partial sums.
const zipfZeta = -99.4235129777281

// zetaExactMax is the number of terms that are added up; above it the
// Euler-Maclaurin expansion is closer than float64 rounding of the sum.
const zetaExactMax = 64

// zeta is the sum of i^-0.99 for i in [1, n].
func zeta(n uint64) float64 {
	if n <= zetaExactMax {
		sum := 0.0
		for i := uint64(1); i <= n; i++ {
			sum += math.Pow(float64(i), -zipfTheta)
		}
		return sum
	}
	x := float64(n)
	power := math.Pow(x, -zipfTheta)
	return zipfZeta + x*power/(1-zipfTheta) + power/2 - zipfTheta*power/(12*x)
}

// zipfRank draws a rank in [0, n), 0 the most frequent, by the method of Gray et
// al., "Quickly generating billion-record synthetic databases", as YCSB does.
func zipfRank(x, n uint64) uint64 {
	zetaN := zeta(n)
	u := unit(x)
	scaled := u * zetaN
	if scaled < 1 || n == 1 {
		return 0
	}
	second := 1 + math.Pow(0.5, zipfTheta)
	if scaled < second || n == 2 {
		return 1
	}
	eta := (1 - math.Pow(2/float64(n), 1-zipfTheta)) / (1 - second/zetaN)
	rank := uint64(float64(n) * math.Pow(eta*u-eta+1, 1/(1-zipfTheta)))
	return min(rank, n-1)
}
