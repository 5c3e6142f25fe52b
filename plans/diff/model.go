package diff

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/internal/message"
	"sandwich/plans"
)

// modelDifference is one difference between two model shapes. A value is "" if the shape lacks the
// item.
type modelDifference struct {
	what, old, new string
	role           string // of a weight; "" for a dimension
}

// modelDifferences returns differing dimensions, then differing weights by role. The result is not
// empty if the digests differ.
func modelDifferences(a, b *plans.ModelShape) []modelDifference {
	out := dimensionDifferences(a, b)
	if weights := weightDifferences(a, b, false); len(weights) > 0 || len(out) > 0 {
		return append(out, weights...) // counts follow from the number of layers
	}
	if out = weightDifferences(a, b, true); len(out) > 0 {
		return out
	}
	return []modelDifference{{"list of weights", a.Digest(), b.Digest(), ""}}
}

// dimensionDifferences returns the dimensions that differ.
func dimensionDifferences(a, b *plans.ModelShape) (out []modelDifference) {
	for _, f := range []struct {
		name string
		x, y any
	}{
		{"arch", message.Clip(a.Arch, 60), message.Clip(b.Arch, 60)}, {"hidden", a.Hidden, b.Hidden}, {"layers",
			a.Layers, b.Layers},
		{"heads", a.Heads, b.Heads}, {"kv_heads", a.KVHeads, b.KVHeads}, {"head_dim", a.HeadDim, b.HeadDim},
		{"ffn", a.FFN, b.FFN}, {"vocab", a.Vocab, b.Vocab}, {"context", a.Context, b.Context}, {"tied", a.Tied, b.Tied},
		{"experts", a.Experts, b.Experts}, {"experts_used", a.ExpertsUsed, b.ExpertsUsed},
		{"expert_ffn", a.ExpertFFN, b.ExpertFFN},
	} {
		if f.x != f.y {
			out = append(out, modelDifference{what: f.name, old: fmt.Sprint(f.x), new: fmt.Sprint(f.y)})
		}
	}
	return out
}

// weightDifferences returns the roles whose weights differ, by shape and type, and by number if
// counted is true.
func weightDifferences(a, b *plans.ModelShape, counted bool) (out []modelDifference) {
	var roles []string
	for _, w := range slices.Concat(a.Weights, b.Weights) {
		if !slices.Contains(roles, w.Role) {
			roles = append(roles, w.Role)
		}
	}
	for _, role := range roles {
		x, y := roleText(a, role, counted), roleText(b, role, counted)
		if x != y {
			out = append(out, modelDifference{"weight " + message.Clip(role, 60), x, y, message.Clip(role, 60)})
		}
	}
	return out
}

// roleText returns the shapes and types of the weights of a role, separated by commas.
func roleText(s *plans.ModelShape, role string, counted bool) string {
	var out []string
	for _, w := range s.Weights {
		if w.Role != role {
			continue
		}
		text := w.Key().String()
		if counted {
			text = fmt.Sprintf("%d of %s", w.Count, text)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// ModelText describes the differences in part of a sentence, at most five of them. Roles whose
// types changed in the same way count as one.
func ModelText(a, b *plans.ModelShape) string {
	var out []string
	roles := map[string][]string{} // by the types of both sides
	var types []string
	for _, d := range modelDifferences(a, b) {
		if change, ok := typeChange(d); ok {
			if roles[change] == nil {
				types = append(types, change)
			}
			roles[change] = append(roles[change], d.role)
			continue
		}
		out = append(out, fmt.Sprintf("%s (%s, not %s)", d.what, message.OrNone(d.new), message.OrNone(d.old)))
	}
	for _, change := range types {
		out = append(out, fmt.Sprintf("the type of the weights %s (%s)", strings.Join(roles[change], " "), change))
	}
	if n := len(out) - 5; n > 0 {
		out = append(out[:5], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}

// typeChange returns a text such as "q4_0, not q8_0" if only the type of a role's weights changed.
func typeChange(d modelDifference) (string, bool) {
	oldShape, oldTypes := shapeAndTypes(d.old)
	newShape, newTypes := shapeAndTypes(d.new)
	if d.role == "" || oldShape != newShape || oldTypes == newTypes {
		return "", false
	}
	return fmt.Sprintf("%s, not %s", newTypes, oldTypes), true
}

// shapeAndTypes splits the result of roleText.
func shapeAndTypes(text string) (shape, types string) {
	var shapes, names []string
	for _, one := range strings.Split(text, ", ") {
		s, t, _ := strings.Cut(one, ":")
		shapes, names = append(shapes, s), append(names, t)
	}
	return strings.Join(slices.Compact(shapes), ", "), strings.Join(names, " and ")
}
