package charset

import (
	"bytes"
	"testing"

	wlynxg "github.com/wlynxg/chardet"
	xnet "golang.org/x/net/html/charset"
)

// samples are pages' worth of text in the encodings that the web still holds
// undeclared, written for this test.
var samples = []struct{ encoding, text string }{
	{"utf-8", "Größe, façade, naïve, élève: кириллица и ещё немного текста"},
	{"windows-1251", "Сегодня утром в городе прошёл сильный дождь, и многие улицы оказались под водой. Жители рассказывают, что такого не помнят уже много лет. Подробности читайте на нашем сайте завтра."},
	{"windows-1251", "Днес в столицата беше открита нова библиотека. Хората могат да четат книги и вестници всеки ден от сутрин до вечер, без да плащат."},
	{"koi8-r", "Сегодня утром в городе прошёл сильный дождь, и многие улицы оказались под водой. Жители рассказывают, что такого не помнят уже много лет."},
	{"ibm866", "Программа для учёта товаров на складе. Перед началом работы прочитайте описание и проверьте настройки принтера."},
	{"shift_jis", "今日は朝から雨が降っていましたが、午後になって晴れました。公園では子供たちが楽しそうに遊んでいます。詳しくはこのページをご覧ください。"},
	{"euc-jp", "今日は朝から雨が降っていましたが、午後になって晴れました。公園では子供たちが楽しそうに遊んでいます。詳しくはこのページをご覧ください。"},
	{"gbk", "今天早上下了一场大雨，许多街道都被水淹没了。居民们说，多年来从未见过这样的情况。更多消息请明天继续关注我们的网站，谢谢大家的支持。"},
	{"gb18030", "图书馆从本周开始延长开放时间，读者可以在晚上继续阅读。请遵守馆内规定，保持安静，爱护图书。"},
	{"big5", "今天早上下了一場大雨，許多街道都被水淹沒了。居民們說，多年來從未見過這樣的情況。更多消息請明天繼續關注我們的網站，謝謝大家的支持。"},
	{"euc-kr", "오늘 아침 시내에 많은 비가 내려 여러 도로가 물에 잠겼습니다. 주민들은 이런 일은 오랫동안 없었다고 말합니다. 자세한 소식은 내일 다시 전해 드리겠습니다."},
	{"windows-1252", "Les élèves de l’école ont préparé une fête à la fin de l’année. Le café était très bon, et où êtes-vous allés après ? Ça dépend du temps, déclare le maire."},
	{"windows-1252", "Die Bürger der Stadt hörten die Glocken läuten. Für größere Straßen fehlt das Geld, erklärte der Bürgermeister; übermorgen wird weiter darüber beraten."},
	{"windows-1252", "El niño comió una manzana en el jardín. Mañana habrá más información sobre la situación de la región, según explicó el señor alcalde."},
	{"iso-8859-2", "Dziś rano w mieście padał silny deszcz i wiele ulic znalazło się pod wodą. Mieszkańcy mówią, że nie pamiętają czegoś takiego od wielu lat. Więcej szczegółów już jutro."},
	{"windows-1250", "Dnes ráno ve městě silně pršelo a mnoho ulic se ocitlo pod vodou. Obyvatelé říkají, že něco takového nepamatují už řadu let. Více podrobností přineseme zítra."},
	{"iso-8859-7", "Σήμερα το πρωί έπεσε δυνατή βροχή στην πόλη και πολλοί δρόμοι βρέθηκαν κάτω από το νερό. Οι κάτοικοι λένε ότι δεν θυμούνται κάτι τέτοιο εδώ και χρόνια."},
	{"windows-1253", "Η βιβλιοθήκη του δήμου θα είναι ανοιχτή κάθε μέρα από το πρωί μέχρι το βράδυ, και όλοι μπορούν να διαβάσουν εκεί εφημερίδες και βιβλία."},
	{"windows-1255", "הבוקר ירד גשם חזק בעיר ורחובות רבים הוצפו במים. התושבים מספרים שלא ראו דבר כזה שנים רבות. פרטים נוספים יפורסמו מחר באתר שלנו."},
	{"windows-1256", "هطلت أمطار غزيرة صباح اليوم على المدينة وغمرت المياه العديد من الشوارع. ويقول السكان إنهم لم يشهدوا مثل ذلك منذ سنوات طويلة."},
	{"windows-1254", "Bugün sabah şehirde şiddetli yağmur yağdı ve birçok sokak sular altında kaldı. Şehir halkı uzun yıllardır böyle bir şey görmediğini söylüyor. Ayrıntılar yarın."},
	{"windows-874", "เมื่อเช้านี้มีฝนตกหนักในเมืองและถนนหลายสายถูกน้ำท่วม ชาวบ้านบอกว่าไม่เคยเห็นแบบนี้มานานหลายปีแล้ว"},
	{"iso-2022-jp", "今日は朝から雨が降っていましたが、午後になって晴れました。"},
}

// same reports whether reading a as b shows a reader the same text.
func sameReading(a, b string, raw []byte) bool {
	if a == b {
		return true
	}
	x, _ := xnet.Lookup(a)
	y, _ := xnet.Lookup(b)
	if x == nil || y == nil {
		return false
	}
	p, err1 := x.NewDecoder().Bytes(raw)
	q, err2 := y.NewDecoder().Bytes(raw)
	return err1 == nil && err2 == nil && string(p) == string(q)
}

// score counts the samples that a detector reads as they were written.
func score(t testing.TB, name string, detect func([]byte) string) int {
	n := 0
	for _, s := range samples {
		enc, _ := xnet.Lookup(s.encoding)
		raw, err := enc.NewEncoder().Bytes([]byte("<!DOCTYPE html><html><head><title>x</title></head><body><p>" + s.text + "</p></body></html>"))
		if err != nil {
			t.Fatalf("%s: %v", s.encoding, err)
		}
		if got := detect(raw); sameReading(s.encoding, got, raw) {
			n++
		} else {
			t.Logf("%s: %s read as %q", name, s.encoding, got)
		}
	}
	return n
}

// The figures that the documentation of Detect gives.
func TestDetectorScore(t *testing.T) {
	for _, d := range []struct {
		name   string
		detect func([]byte) string
		want   int
	}{
		{"Detect", Detect, 21},
		{"wlynxg/chardet", func(b []byte) string { return wlynxg.Detect(b).Encoding }, 18},
		{"x/net/html/charset", func(b []byte) string {
			_, name, _ := xnet.DetermineEncoding(b, "text/html")
			return name
		}, 4},
	} {
		if got := score(t, d.name, d.detect); got != d.want {
			t.Errorf("%s reads %d of %d samples right, want %d", d.name, got, len(samples), d.want)
		}
	}
}

// A guess must not be worse than the default on pages that are UTF-8.
func TestDetectUTF8CutAtTheEnd(t *testing.T) {
	text := []byte("<p>Größe кириллица 今日は")
	for n := range text {
		if got := Detect(text[:n]); got != "utf-8" && !isASCII(WholeRunes(text[:n])) {
			t.Errorf("%q read as %q", text[:n], got)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	enc, _ := xnet.Lookup("windows-1251")
	raw, err := enc.NewEncoder().Bytes([]byte(samples[1].text))
	if err != nil {
		b.Fatal(err)
	}
	page := bytes.Repeat(raw, 8<<10/len(raw)+1)[:8<<10]
	b.SetBytes(8 << 10)
	b.ReportAllocs()
	for b.Loop() {
		Detect(page)
	}
}
