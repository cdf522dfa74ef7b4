package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// binaryFormat is the format of all values, both ways: PostgreSQL's own for
// bigint, and for text and bytea the bytes as they are.
var binaryFormat = []int16{1}

// statement is a query as it is prepared on one connection. The same query with
// arguments of other types is another statement.
type statement struct {
	name  string // empty where it is not kept
	query string // with PostgreSQL's placeholders
	types []uint32
	// described is what the server has told of it; nil until it has been prepared.
	described *pgconn.StatementDescription
	// asked says that the server was asked to prepare it.
	asked bool
}

// statementKey is a query with the types of its arguments, two bits for each.
type statementKey struct {
	query   string
	types   uint64
	guarded bool
}

// maxArguments is what a statementKey holds.
const maxArguments = 32

// statements are those of one connection.
type statements struct {
	// named says that they are kept prepared.
	named   bool
	known   map[statementKey]*statement
	scratch []byte
	values  [][]byte
}

func newStatements(named bool) *statements {
	// An empty text in a scratch that is nil would be nil too, which is NULL.
	return &statements{named: named, known: map[statementKey]*statement{}, scratch: make([]byte, 0, 512)}
}

// maxStatements bounds what a connection keeps prepared. The journal has far
// fewer; only text that is built for each call could ever reach it.
const maxStatements = 1024

// find returns the statement for a query and its arguments. guarded makes it fail
// where it finds nothing; see nothingFails.
func (s *statements) find(query string, args []any, guarded bool) (*statement, error) {
	key := statementKey{query: query, guarded: guarded}
	if len(args) > maxArguments {
		return nil, fmt.Errorf("%d arguments; %d are the most", len(args), maxArguments)
	}
	for i, arg := range args {
		kind, err := kindOf(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		key.types |= uint64(kind) << (2 * i)
	}
	if known := s.known[key]; known != nil {
		return known, nil
	}
	made := &statement{query: placeholders(query), types: make([]uint32, len(args))}
	if guarded {
		made.query = nothingFails(made.query)
	}
	for i := range args {
		made.types[i] = oids[key.types>>(2*i)&3]
	}
	if len(s.known) < maxStatements {
		s.known[key] = made
		if s.named {
			made.name = made.called()
		}
	}
	return made, nil
}

// called is a name that no other statement has, on whatever connection: behind a
// pooler, what another node has prepared may stand there.
func (s *statement) called() string {
	sum := sha256.Sum256(fmt.Append(nil, s.types, s.query))
	return "parley_" + hex.EncodeToString(sum[:12])
}

// nothingChanged is what the server can't make a number of.
const nothingChanged = "parley: nothing has changed"

// nothingFails makes a statement fail where it changes no row; see isNothing. The
// COMMIT that is sent behind it then commits nothing. What the statement returns
// comes with one column more.
func nothingFails(query string) string {
	if !returns(query) {
		query += " RETURNING 1"
	}
	return "WITH done AS (" + query + ") SELECT done.*, CAST(CASE (SELECT count(*) FROM done) WHEN 0 THEN '" + nothingChanged +
		"' ELSE '1' END AS INTEGER) FROM (SELECT 1) AS one LEFT JOIN done ON true"
}

// guardable says that nothingFails can have a statement: one that changes rows.
func guardable(query string) bool {
	words := strings.Fields(strings.ToUpper(query))
	return len(words) > 0 && slices.Contains([]string{"INSERT", "UPDATE", "DELETE"}, words[0])
}

// returns says whether a statement that changes rows returns them.
func returns(query string) bool { return slices.Contains(strings.Fields(query), "RETURNING") }

// oids are the types of the kinds of arguments; 0 leaves it to the server, which
// takes the type of the column.
var oids = [...]uint32{0, pgtype.Int8OID, pgtype.TextOID, pgtype.ByteaOID}

// kindOf is an argument's place in oids.
func kindOf(arg any) (int, error) {
	switch arg.(type) {
	case nil:
		return 0, nil
	case int64:
		return 1, nil
	case string:
		return 2, nil
	case []byte:
		return 3, nil
	}
	return 0, fmt.Errorf("a %T can't be bound", arg)
}

// bind encodes arguments. What it returns is good until the next call.
func (s *statements) bind(args []any) [][]byte {
	s.scratch, s.values = s.scratch[:0], s.values[:0]
	for _, arg := range args {
		from := len(s.scratch)
		switch arg := arg.(type) {
		case int64:
			s.scratch = binary.BigEndian.AppendUint64(s.scratch, uint64(arg))
		case string:
			s.scratch = append(s.scratch, storable(arg)...)
		case []byte:
			s.values = append(s.values, arg)
			continue
		default:
			s.values = append(s.values, nil)
			continue
		}
		s.values = append(s.values, s.scratch[from:len(s.scratch):len(s.scratch)])
	}
	return s.values
}

// storable is text as PostgreSQL can hold it: what it can't, such as U+0000 in an
// error's words or in an id, becomes U+FFFD. Content never has any of that.
func storable(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

// placeholders turns ? and ?1 into $1, outside of quotes. As in SQLite, a bare one
// has the number after the highest before it.
func placeholders(query string) string {
	out := make([]byte, 0, len(query)+16)
	next, quoted := 1, false
	for i := 0; i < len(query); i++ {
		c := query[i]
		quoted = quoted != (c == '\'')
		if c != '?' || quoted {
			out = append(out, c)
			continue
		}
		out = append(out, '$')
		number, digits := 0, i+1
		for ; digits < len(query) && query[digits] >= '0' && query[digits] <= '9'; digits++ {
			number = 10*number + int(query[digits]-'0')
		}
		if i = digits - 1; number == 0 {
			number = next
		}
		out = strconv.AppendInt(out, int64(number), 10)
		next = max(next, number+1)
	}
	return string(out)
}
